"""Writes checkpoint files with the libraries that trainings use, and prints which damaged ones the libraries refuse.

Each file is truncated to many lengths, and written once with zeros in place of its first page. The files beside a
database are truncated too.

write.py FOLDER: prints a JSON array of {"file": name, "format": name, "loads": true or false, "whole": true or false}.
A large library that is not installed is left out, and named on stderr. .ci/run installs the others. XGBoost and LightGBM
are left out, because they crash on truncated files.
"""
import bz2, gzip, importlib, io, json, lzma, os, pickle, random, sqlite3, subprocess, sys, tarfile, warnings

os.environ.setdefault("KERAS_BACKEND", "numpy")
warnings.simplefilter("ignore")
folder = sys.argv[1]
random.seed(1)
state = {"epoch": 3, "w": random.randbytes(5000), "history": [0.1 * i for i in range(200)]}


def optional(name):
    try:
        return importlib.import_module(name)
    except Exception:
        print(f"without {name}", file=sys.stderr)
        return None


names = ["numpy", "h5py", "safetensors.numpy", "joblib", "zstandard", "lz4.frame", "msgpack"]
numpy, h5py, safetensors, joblib, zstandard, lz4, msgpack = map(importlib.import_module, names)
torch, keras, flax, tensorflow = map(optional, ["torch", "keras", "flax.serialization", "tensorflow"])


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
    database = sqlite3.connect(path)
    try:
        rows = database.execute("pragma integrity_check").fetchall()
        assert rows == [("ok",)], rows
        assert database.execute("select count(*), sum(length(w)) from t").fetchone() == (20, 18000)
    finally:
        database.close()


def kill(path, settings, statements):
    """Makes a database, and kills another process within a transaction on it."""
    with sqlite3.connect(path) as database:
        database.execute("pragma page_size = 1024")
        database.execute("create table t(e integer primary key, w blob)")
        database.executemany("insert into t values(?, ?)", [(e, random.randbytes(900)) for e in range(60)])
    database.close()
    child = f"""
import os, sqlite3
database = sqlite3.connect({path!r}, isolation_level=None)
for statement in {["pragma cache_size = 5", *settings, *statements]!r}:
    database.execute(statement).fetchall()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", child], check=True)


def load_killed(path):
    database = sqlite3.connect(path)
    try:
        rows = database.execute("pragma integrity_check").fetchall()
        assert rows == [("ok",)], rows
        # The log's last transactions may be lost.
        assert database.execute("select count(*) from t").fetchone()[0] in (60, 120)
    finally:
        database.close()


def save_h5(path, **options):
    with h5py.File(path, "w", **options) as file:
        file["w"] = numpy.arange(3000.0)
        file.create_dataset("packed", data=numpy.arange(3000.0), chunks=(100,), compression="gzip")
        file.attrs["epoch"] = 3


def load_h5(path):
    with h5py.File(path, "r") as file:
        assert file["w"][:].sum() == file["packed"][:].sum()


def save_tar(path, kind, mode="w"):
    with tarfile.open(path, mode, format=kind) as archive:
        long = "a-folder/" + "long-name" * (8 if kind == tarfile.USTAR_FORMAT else 20)
        for name in ["model.bin", long]:
            member = tarfile.TarInfo(name)
            member.size = len(state["w"])
            archive.addfile(member, io.BytesIO(state["w"]))


def load_tar(path):
    with tarfile.open(path) as archive:
        for member in archive:
            archive.extractfile(member).read()


def load_lines(path):
    for line in read(path, "r").splitlines():
        json.loads(line)


def load_pickles(path):
    with open(path, "rb") as file:
        pickle.load(file)
        while file.peek(1):
            pickle.load(file)


def load_zstd(path):
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    decompressor.decompress(read(path))
    assert decompressor.eof


def save_tensorflow(path):
    variables = {f"v{i}": tensorflow.Variable(w * i) for i in range(40)}
    tensorflow.train.Checkpoint(**variables).write(path.rsplit(".", 1)[0])


def load_tensorflow(path):
    reader = tensorflow.train.load_checkpoint(path.rsplit(".", 1)[0])
    assert sum(numpy.size(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()) > 40 * w.size


load_pickle = lambda f: pickle.loads(read(f))
lines = "".join(json.dumps({"epoch": e, "loss": [1 / (e + 1)]}) + "\n" for e in range(60))
cases = [("pickle", f"{p}.pkl", lambda f, p=p: write(f, pickle.dumps(state, p)), load_pickle) for p in range(6)]
# The content is larger than a frame.
big = {"parts": [random.randbytes(40000) for _ in range(3)], "names": [f"layer-{i}" for i in range(9000)]}
cases += [
    ("pickle", "frames.pkl", lambda f: write(f, pickle.dumps(big, 4)), load_pickle),
    ("pickle", "several.pkl", lambda f: write(f, pickle.dumps(state, 4) + pickle.dumps(state, 4)), load_pickles),
    ("json", "state.json", lambda f: write(f, json.dumps(state["history"]), "w"), lambda f: json.loads(read(f, "r"))),
    ("json", "deep.json", lambda f: write(f, json.dumps({"a": {"b": [1, None, "é"]}}, indent=1), "w"),
     lambda f: json.loads(read(f, "r"))),
    ("jsonl", "history.jsonl", lambda f: write(f, lines, "w"), load_lines),
    ("gzip", "state.pkl.gz", lambda f: write(f, gzip.compress(pickle.dumps(state))), lambda f: gzip.decompress(read(f))),
    ("gzip", "two.gz", lambda f: write(f, gzip.compress(b"a" * 999) + gzip.compress(state["w"])),
     lambda f: gzip.decompress(read(f))),
    ("sqlite", "study.db", save_sqlite, load_sqlite),
    ("gzip", "state.tar.gz", lambda f: save_tar(f, tarfile.PAX_FORMAT, "w:gz"), load_tar),
]
change, grow = "update t set w = randomblob(900)", "insert into t select e + 1000, randomblob(1900) from t"
shrink = "delete from t where e >= 1000"
for name, settings, statements in [
    ("hot", [], ["begin", change]),
    ("hot-grown", [], ["begin", grow, change]),
    ("hot-later", [], [grow, shrink, "begin", change, grow]),
    ("hot-unsafe", ["pragma synchronous = off"], ["begin", change, grow]),
    ("hot-vacuum", [], ["vacuum", "begin", grow, change, shrink]),
    ("log", ["pragma journal_mode = wal", "pragma wal_autocheckpoint = 0"], [grow, shrink, change]),
    ("log-read", ["pragma journal_mode = wal"], [grow, "pragma wal_checkpoint", shrink, change]),
    ("log-open", ["pragma journal_mode = wal", "pragma wal_autocheckpoint = 0"], [change, "begin", grow, change]),
    ("log-freed", ["pragma journal_mode = wal"], ["begin", grow, shrink, "commit", "begin", grow]),
]:
    cases.append(("sqlite", f"{name}.db", lambda f, s=settings, t=statements: kill(f, s, t), load_killed))
for kind, ending, library in [("bzip2", "bz2", bz2), ("xz", "xz", lzma), ("zstd", "zst", zstandard), ("lz4", "lz4", lz4)]:
    save = lambda f, l=library: write(f, l.compress(pickle.dumps(big)))
    save_two = lambda f, l=library: write(f, l.compress(b"a" * 999) + l.compress(state["w"]))
    load = lambda f, l=library: l.open(f).read()
    # Zstandard's reader accepts a frame that ends too early, unless it must read exactly one frame.
    load_one = (lambda f: zstandard.decompress(read(f))) if library is zstandard else load
    cases += [(kind, f"state.pkl.{ending}", save, load_one), (kind, f"two.{ending}", save_two, load)]
cases.append(("zstd", "checked.zst", lambda f: write(f, zstandard.ZstdCompressor(
    level=19, write_checksum=True, write_content_size=False).compress(pickle.dumps(big))), load_zstd))
cases.append(("lz4", "checked.lz4", lambda f: write(f, lz4.compress(
    pickle.dumps(big), content_checksum=True, block_checksum=True, block_linked=False, store_size=False)),
    lambda f: lz4.open(f).read()))
for kind in ["USTAR", "GNU", "PAX"]:
    number = getattr(tarfile, f"{kind}_FORMAT")
    cases.append(("tar", f"{kind}.tar", lambda f, n=number: save_tar(f, n), load_tar))
w = numpy.arange(1500, dtype="float32").reshape(3, 500)
objects = numpy.array([{"a": 1}, None] * 20, dtype=object)
arrays = {
    "w": w, "names": numpy.array(["a", "bcd"] * 50), "one": numpy.float64(3), "complex": w.astype("complex128"),
    "bytes": numpy.array([b"abc", b"d"] * 50), "times": numpy.arange(50).astype("datetime64[ns]"),
    "bool": w > 3, "fortran": numpy.asfortranarray(w), "objects": objects,
    "records": numpy.zeros(40, dtype=[("a", "f4"), ("b", "i8")]),
}
for name, array in arrays.items():
    cases.append(("npy", f"{name}.npy", lambda f, a=array: numpy.save(f, a), lambda f: numpy.load(f, allow_pickle=True)))
load_npz = lambda f: [x.sum() for x in numpy.load(f).values()]
cases += [
    ("zip", "w.npz", lambda f: numpy.savez(f, w=w, v=w), load_npz),
    ("zip", "packed.npz", lambda f: numpy.savez_compressed(f, w=w), load_npz),
    ("pickle", "arrays.pkl", lambda f: write(f, pickle.dumps({"w": w, "a": w.copy()}, 5)), load_pickle),
]
cases.append(("safetensors", "model.safetensors", lambda f: safetensors.save_file(
    {"w": w, "v": w[0].copy()}, f, metadata={"data_offsets": "x"}), safetensors.load_file))
for version in ["earliest", "v108", "v110", "latest"]:
    cases.append(("hdf5", f"{version}.h5", lambda f, v=version: save_h5(f, libver=v), load_h5))
for version in ["earliest", "latest"]:
    cases.append(("hdf5", f"user_block-{version}.h5",
                  lambda f, v=version: save_h5(f, libver=v, userblock_size=1024), load_h5))
cases.append(("msgpack", "state.msgpack", lambda f: write(f, msgpack.packb(state)), lambda f: msgpack.unpackb(read(f))))
if flax:
    cases.append(("msgpack", "flax.msgpack", lambda f: write(f, flax.to_bytes({"step": 3, "params": {"w": w}})),
                  lambda f: flax.msgpack_restore(read(f))))
if tensorflow:
    for name in ["ckpt-1.index", "ckpt-2.data-00000-of-00001"]:
        cases.append(("tensorflow", name, save_tensorflow, load_tensorflow))
estimator = {"w": w, "epoch": 3, "v": numpy.zeros((9, 9))}
cases.append(("joblib", "model.joblib", lambda f: joblib.dump(estimator, f), joblib.load))
cases.append(("joblib", "model-joblib.pkl", lambda f: joblib.dump(estimator, f), joblib.load))
for method in ["zlib", "gzip", "bz2", "xz", "lz4"]:
    cases.append(("compressed joblib", f"{method}-joblib.pkl",
                  lambda f, m=method: joblib.dump(estimator, f, compress=(m, 3)), joblib.load))
if keras:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(64), keras.layers.Dense(3)])
    load_keras = lambda f: keras.saving.load_model(f)
    cases.append(("zip", "model.keras", lambda f: model.save(f), load_keras))
    cases.append(("hdf5", "model.weights.h5", lambda f: model.save_weights(f), lambda f: model.load_weights(f)))
if torch:
    tensors = {"w": torch.arange(1000.0), "epoch": 3}
    load_torch = lambda f: torch.load(f, weights_only=False)
    cases.append(("zip", "model.pt", lambda f: torch.save(tensors, f), load_torch))
    cases.append(("torch legacy", "legacy.pt",
                  lambda f: torch.save(tensors, f, _use_new_zipfile_serialization=False), load_torch))


def loads(load, path):
    try:
        load(path)
        return True
    except Exception:
        return False


def put(path, content, beside):
    write(path, content)
    for name, other in beside.items():
        write(os.path.join(os.path.dirname(path), name), other)


table = []
for kind, name, save, load in cases:
    # Some libraries choose by the ending, so a truncated file has the name of the whole one.
    whole = os.path.join(folder, "whole", name)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    before = {*os.listdir(os.path.dirname(whole)), name}
    save(whole)
    content = read(whole)
    # These files belong to the main one.
    beside = {*os.listdir(os.path.dirname(whole))} - before
    # SQLite recreates the index of its log.
    beside = {other: read(os.path.join(folder, "whole", other)) for other in beside if not other.endswith("-shm")}
    files = {"whole": (content, beside)}
    lengths = {len(content) * part // 40 for part in range(40)}
    lengths |= {len(content) - n for n in (1, 2, 3, 8, 22, 100, 512, 1024)} | {1, 4, 8, 12, 16, 24, 48, 64, 96, 100, 128, 512, 1024}
    files |= {str(length): (content[:length], beside) for length in sorted(lengths) if 0 < length < len(content)}
    files["first-page"] = bytes(4096) + content[4096:] if len(content) > 4096 else bytes(len(content)), beside
    # SQLite's files are judged together, and those of other libraries one by one.
    for other, rest in beside.items() if kind == "sqlite" else []:
        files |= {f"beside-{n}": (content, beside | {other: rest[:len(rest) * n // 20]}) for n in range(1, 20)}
    for part, (rest, others) in files.items():
        path = os.path.join(folder, part, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, rest, others)
        table.append({"file": f"{part}/{name}", "format": kind, "loads": loads(load, path), "whole": part == "whole"})
        # Opening the file may have changed it.
        put(path, rest, others)
json.dump(table, sys.stdout)
