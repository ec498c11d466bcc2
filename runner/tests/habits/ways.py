"""Ways to save checkpoints, and to find the newest one: as libraries and people do it."""
import io
import itertools
import json
import os
import pickle
import shutil
import sqlite3
import threading
import time
import zipfile

WEIGHTS = 200_000


def state(epoch):
    return pickle.dumps({"epoch": epoch, "weights": os.urandom(WEIGHTS)})


def epoch_of(path):
    return pickle.loads(path.read_bytes())["epoch"]


class Way:
    def __init__(self, folder):
        self.folder = folder


class NewFiles(Way):
    """epoch_3.pkl: one file per epoch; the largest number is the newest."""
    start, ending = "epoch_", ".pkl"

    def load(self):
        numbers = [int(path.stem[len(self.start):]) for path in self.folder.glob(f"{self.start}*{self.ending}")]
        return self.read(self.folder / f"{self.start}{max(numbers)}{self.ending}") if numbers else -1

    def read(self, path):
        return epoch_of(path)

    def content(self, epoch):
        return state(epoch)

    def save(self, epoch, writer):
        writer.write(self.folder / f"{self.start}{epoch}{self.ending}", self.content(epoch))


class LogsBeside(NewFiles):
    """The same, beside logs that are open all the time, and grow."""

    def __init__(self, folder):
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        logs = [open(folder / name, "w") for name in ("time_left.tsv", "train.txt", "events.out.tfevents.1.host.1.0")]

        def log():
            for step in itertools.count():
                for file in logs:
                    file.write(f"{step}\t{step / 7}\n")
                    file.flush()
                time.sleep(0.03)

        threading.Thread(target=log, daemon=True).start()


class Zip(NewFiles):
    """What torch.save writes is a zip file."""
    ending = ".pt"

    def read(self, path):
        return pickle.loads(zipfile.ZipFile(path).read("archive/data.pkl"))["epoch"]

    def content(self, epoch):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("archive/data.pkl", state(epoch))
        return content.getvalue()


class InPlace(Way):
    """One file that is written again and again."""
    name = "ckpt.pkl"

    def load(self):
        path = self.folder / self.name
        return epoch_of(path) if path.exists() else -1

    def save(self, epoch, writer):
        writer.write(self.folder / self.name, state(epoch))


class Renamed(InPlace):
    """One file that is written under another name, and renamed."""
    name = "ckpt.pt"

    def save(self, epoch, writer):
        writer.write(self.folder / "ckpt.pt.tmp", state(epoch))
        os.replace(self.folder / "ckpt.pt.tmp", self.folder / self.name)


class TextModel(InPlace):
    """LightGBM: a model as text, in a file that is named like a log."""
    name = "model.txt"
    end = "end of trees\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n"

    def load(self):
        path = self.folder / self.name
        if not path.exists():
            return -1
        text = path.read_text()
        assert text.endswith(self.end), "the model is incomplete"
        return text.count("Tree=") // 1000

    def save(self, epoch, writer):
        trees = "".join(f"Tree={number}\nnum_leaves=31\n\n" for number in range(1000 * epoch))
        writer.write(self.folder / self.name, f"tree\nversion=v4\n\n{trees}{self.end}".encode())


class TextState(InPlace):
    """numpy.savetxt: plain numbers, in a file that is named like a log."""
    name = "weights.csv"

    def load(self):
        path = self.folder / self.name
        if not path.exists():
            return -1
        rows = path.read_text().splitlines()
        assert len(rows) == 5000, "rows are missing"
        return int(rows[0])

    def save(self, epoch, writer):
        writer.write(self.folder / self.name, "".join(f"{epoch}\n" for _ in range(5000)).encode())


class HardLink(InPlace):
    """timm: a file is renamed to last.pth, and gets its number as a second name."""
    name = "last.pth"

    def save(self, epoch, writer):
        writer.write(self.folder / "tmp.pth", state(epoch))
        os.replace(self.folder / "tmp.pth", self.folder / self.name)
        os.link(self.folder / self.name, self.folder / f"checkpoint-{epoch}.pth")


class SymbolicLink(InPlace):
    """Lightning with save_last="link": last.ckpt leads to the newest file."""
    name = "last.ckpt"

    def save(self, epoch, writer):
        writer.write(self.folder / f"epoch={epoch}.ckpt", state(epoch))
        (self.folder / self.name).unlink(missing_ok=True)
        os.symlink(f"epoch={epoch}.ckpt", self.folder / self.name)


class RawArray(InPlace):
    """A file without a format, which is overwritten and never cut short."""
    name = "weights.bin"

    def load(self):
        path = self.folder / self.name
        return int.from_bytes(path.read_bytes()[:8], "little") if path.exists() else -1

    def save(self, epoch, writer):
        path, content = self.folder / self.name, epoch.to_bytes(8, "little") + os.urandom(WEIGHTS)
        with open(path, "r+b" if path.exists() else "wb", buffering=0) as file:
            file.write(content[: WEIGHTS // 2])
            writer.nth += 1
            writer.stop_at("half")
            file.write(content[WEIGHTS // 2:])


class Counter(Way):
    """Weights by epoch; state.json, rewritten in place, says which are the newest."""

    def load(self):
        path = self.folder / "state.json"
        return epoch_of(self.folder / f"weights-{json.loads(path.read_text())['epoch']}.pkl") if path.exists() else -1

    def save(self, epoch, writer):
        writer.write(self.folder / f"weights-{epoch}.pkl", state(epoch))
        writer.write(self.folder / "state.json", json.dumps({"epoch": epoch}).encode())


class Pointer(Way):
    """DeepSpeed: the file `latest` names the newest folder."""

    def load(self):
        path = self.folder / "latest"
        return epoch_of(self.folder / path.read_text().strip() / "mp_rank_00_model_states.pt") if path.exists() else -1

    def save(self, epoch, writer):
        folder = f"global_step{100 + epoch}"
        writer.write(self.folder / folder / "mp_rank_00_model_states.pt", state(epoch))
        writer.write(self.folder / "latest", folder.encode())


class AbsolutePointer(Way):
    """MMEngine: the file `last_checkpoint` holds an absolute path."""

    def load(self):
        path = self.folder / "last_checkpoint"
        return pickle.loads(open(path.read_text(), "rb").read())["epoch"] if path.exists() else -1

    def save(self, epoch, writer):
        path = self.folder / f"epoch_{epoch}.pth"
        writer.write(path, state(epoch))
        writer.write(self.folder / "last_checkpoint", str(path).encode())


class Mark(Way):
    """A folder counts once the empty file COMPLETE is in it."""

    def load(self):
        return max((int(path.parent.name.split("-")[1]) for path in self.folder.glob("*/COMPLETE")), default=-1)

    def save(self, epoch, writer):
        folder = self.folder / f"checkpoint-{epoch}"
        writer.write(folder / "model.pkl", state(epoch))
        writer.write(folder / "COMPLETE", b"")


class Folders(Way):
    """Hugging Face: the folder with the largest number is the newest."""
    start = "checkpoint-"

    def load(self):
        numbers = [int(path.name[len(self.start):]) for path in self.folder.glob(f"{self.start}*")]
        if not numbers:
            return -1
        folder = self.folder / f"{self.start}{max(numbers)}"
        content = (folder / "model.safetensors").read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length])
        if len(content) != 8 + length + header["w"]["data_offsets"][1]:
            raise SystemExit("incomplete safetensors file")
        json.loads((folder / "trainer_state.json").read_text())
        return int(header["__metadata__"]["epoch"])

    def save(self, epoch, writer):
        folder = self.folder / f"{self.start}{epoch}"
        tensor = {"dtype": "U8", "shape": [WEIGHTS], "data_offsets": [0, WEIGHTS]}
        header = json.dumps({"w": tensor, "__metadata__": {"epoch": str(epoch)}}).encode()
        content = len(header).to_bytes(8, "little") + header + os.urandom(WEIGHTS)
        writer.write(folder / "model.safetensors", content)
        writer.write(folder / "trainer_state.json", b'{"log_history": []}')


class Parts(Way):
    """Several files, whose names have the number of their checkpoint beside others."""
    parts = 3

    def path(self, epoch, part):
        raise NotImplementedError

    def load(self):
        epochs = [epoch for epoch in range(9) if any(self.path(epoch, part).exists() for part in range(self.parts))]
        if not epochs:
            return -1
        found = {epoch_of(self.path(max(epochs), part)) for part in range(self.parts)}
        assert found == {max(epochs)}, found
        return max(epochs)

    def save(self, epoch, writer):
        time.sleep(1)  # A training takes longer than a save.
        for part in range(self.parts):
            writer.write(self.path(epoch, part), state(epoch))


class TwoNumbers(Parts):
    """NeMo: a folder with the epoch and the step in its name."""

    def path(self, epoch, part):
        return self.folder / f"epoch_0_step_{epoch}" / f"model-{part + 1:05}-of-{self.parts:05}.bin"


class Dates(Parts):
    """A folder with a date as its name."""

    def path(self, epoch, part):
        return self.folder / f"2026-01-01_00-00-0{epoch}" / ("model.pt", "optim.pt", "rng.pt")[part]


class Shards(Parts):
    """metaseq: shards beside each other."""

    def path(self, epoch, part):
        return self.folder / f"checkpoint_{epoch}-model_part-0-shard{part}.pt"


class Ranks(Parts):
    """A folder for each rank, with a file per epoch."""

    def path(self, epoch, part):
        return self.folder / f"rank{part}" / f"epoch_{epoch}.pt"


class NumberFolders(Folders):
    """Folders whose names are only numbers."""
    start = ""


class SwappedFolder(Way):
    """The folder `latest` is removed, and a new one is renamed to it."""

    def load(self):
        path = self.folder / "latest/model.pkl"
        return epoch_of(path) if path.exists() else -1

    def save(self, epoch, writer):
        writer.write(self.folder / "new/model.pkl", state(epoch))
        shutil.rmtree(self.folder / "latest", ignore_errors=True)
        os.rename(self.folder / "new", self.folder / "latest")


class Sqlite(Way):
    """A row per epoch in a database."""

    def load(self):
        with sqlite3.connect(self.folder / "study.db") as database:
            database.execute("create table if not exists epochs (epoch integer, weights blob)")
            found = database.execute("select max(epoch) from epochs").fetchone()[0]
        return -1 if found is None else found

    def save(self, epoch, writer):
        with sqlite3.connect(self.folder / "study.db") as database:
            database.execute("pragma cache_size = 1")  # So that a part is written before the end.
            database.execute("insert into epochs values (?, ?)", (epoch, os.urandom(WEIGHTS)))
            writer.nth += 1
            writer.stop_at("half")


WAYS = {
    "new files": NewFiles,
    "logs beside": LogsBeside,
    "zip": Zip,
    "in place": InPlace,
    "text model": TextModel,
    "text state": TextState,
    "renamed": Renamed,
    "hard link": HardLink,
    "symbolic link": SymbolicLink,
    "raw array": RawArray,
    "counter": Counter,
    "pointer": Pointer,
    "absolute pointer": AbsolutePointer,
    "mark": Mark,
    "folders": Folders,
    "number folders": NumberFolders,
    "two numbers": TwoNumbers,
    "dates": Dates,
    "shards": Shards,
    "ranks": Ranks,
    "swapped folder": SwappedFolder,
    "sqlite": Sqlite,
}
