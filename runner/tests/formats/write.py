"""Writes checkpoint files with the libraries that trainings use, and says which of their truncations the libraries refuse.

write.py FOLDER: prints JSON lines {"file": name, "loads": true or false, "whole": true or false}.
A library that is not installed is left out.
"""
import gzip, importlib, json, os, pickle, random, sqlite3, sys

folder = sys.argv[1]
at = lambda name: os.path.join(folder, name)
random.seed(1)
state = {"epoch": 3, "w": random.randbytes(5000), "history": [0.1 * i for i in range(200)]}


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


numpy, h5py, safetensors, parquet, torch = map(
    optional, ["numpy", "h5py", "safetensors.numpy", "pyarrow.parquet", "torch"]
)


def read(path, mode="rb"):
    with open(path, mode) as file:
        return file.read()


def write(path, content, mode="wb"):
    with open(path, mode) as file:
        file.write(content)


def save_sqlite(path):
    with sqlite3.connect(path) as database:
        database.execute("create table t(e integer, w blob)")
        database.executemany("insert into t values(?, ?)", [(e, random.randbytes(900)) for e in range(20)])
    database.close()


def load_sqlite(path):
    with sqlite3.connect(path) as database:
        rows = database.execute("pragma integrity_check").fetchall()
        assert rows == [("ok",)], rows
        assert database.execute("select count(*), sum(length(w)) from t").fetchone() == (20, 18000)


def save_h5(path):
    with h5py.File(path, "w") as file:
        file["w"] = numpy.arange(3000.0)
        file.create_dataset("packed", data=numpy.arange(3000.0), chunks=(100,), compression="gzip")
        file.attrs["epoch"] = 3


def load_h5(path):
    with h5py.File(path, "r") as file:
        assert file["w"][:].sum() == file["packed"][:].sum()


cases = [(f"{p}.pkl", lambda f, p=p: write(f, pickle.dumps(state, p)), lambda f: pickle.loads(read(f))) for p in (2, 3, 4, 5)]
cases += [
    ("state.json", lambda f: write(f, json.dumps(state["history"]), "w"), lambda f: json.loads(read(f, "r"))),
    ("state.pkl.gz", lambda f: write(f, gzip.compress(pickle.dumps(state))), lambda f: gzip.decompress(read(f))),
    ("study.db", save_sqlite, load_sqlite),
]
if numpy:
    w = numpy.arange(1500, dtype="float32").reshape(3, 500)
    cases += [
        ("w.npy", lambda f: numpy.save(f, w), lambda f: numpy.load(f)),
        ("names.npy", lambda f: numpy.save(f, numpy.array(["a", "bcd"] * 50)), lambda f: numpy.load(f)),
        ("objects.npy", lambda f: numpy.save(f, numpy.array([{"a": 1}, None] * 20, dtype=object), allow_pickle=True),
         lambda f: numpy.load(f, allow_pickle=True)),
        ("w.npz", lambda f: numpy.savez(f, w=w, v=w), lambda f: [x.sum() for x in numpy.load(f).values()]),
        ("packed.npz", lambda f: numpy.savez_compressed(f, w=w), lambda f: [x.sum() for x in numpy.load(f).values()]),
        ("arrays.pkl", lambda f: write(f, pickle.dumps({"w": w, "a": w.copy()}, 5)), lambda f: pickle.loads(read(f))),
    ]
if safetensors:
    cases.append(("model.safetensors", lambda f: safetensors.save_file({"w": w, "v": w[0].copy()}, f), safetensors.load_file))
if h5py:
    cases.append(("model.h5", save_h5, load_h5))
    cases.append(("latest.weights.h5", lambda f: h5py.File(f, "w", libver="latest").create_dataset("w", data=w).file.close(),
                  lambda f: h5py.File(f, "r")["w"][:].sum()))
if parquet:
    table = importlib.import_module("pyarrow").table({"e": list(range(500))})
    cases.append(("table.parquet", lambda f: parquet.write_table(table, f), parquet.read_table))
if torch:
    tensors = {"w": torch.arange(1000.0), "epoch": 3}
    load = lambda f: torch.load(f, weights_only=False)
    cases.append(("model.pt", lambda f: torch.save(tensors, f), load))
    cases.append(("legacy.pt", lambda f: torch.save(tensors, f, _use_new_zipfile_serialization=False), load))


def loads(load, path):
    try:
        load(path)
        return True
    except Exception:
        return False


for name, save, load in cases:
    save(at(name))
    content = read(at(name))
    lengths = {len(content) * part // 24 for part in range(24)} | {len(content) - n for n in (1, 2, 3, 8, 22, 100)}
    print(json.dumps({"file": name, "loads": loads(load, at(name)), "whole": True}))
    for length in sorted(length for length in lengths if 0 < length < len(content)):
        cut = f"{length}-{name}"
        write(at(cut), content[:length])
        print(json.dumps({"file": cut, "loads": loads(load, at(cut)), "whole": False}))
        # Opening it may have changed it.
        write(at(cut), content[:length])
