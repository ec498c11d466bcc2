"""A training that saves a checkpoint per epoch, in the way that --habit names, and starts from the newest one.

In the first attempt, where the variable HOLDING names a file, it stops at a known point: after epoch --hold, or in a
file of epoch --cut. It makes that file there, or after epoch --ready where that is given.
"""
import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from ways import WAYS

parser = argparse.ArgumentParser()
parser.add_argument("--habit", required=True)
parser.add_argument("--ready", type=int, help="epoch")
parser.add_argument("--hold", type=int, help="epoch")
parser.add_argument("--cut", help="epoch:file:point; a point is before, empty or half")
parser.add_argument("--saves-on-sigterm", action="store_true")
options = parser.parse_args()
holding = os.environ.get("HOLDING")
stopped = False


def on_signal(*_):
    global stopped
    stopped = True


def is_sealed():
    """Whether a running seal has taken in every file as it is. It leaves out what is open: the database."""
    folder = Path(os.environ["SPOTSWEEP_CHECKPOINTS"]).resolve()
    try:
        sealed = json.loads((folder.parent / ".spotsweep/seal.json").read_text())["files"]
    except FileNotFoundError:
        return False
    files = {path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    files -= {file.resolve() for file in Path("/proc/self/fd").iterdir()}
    sealed_at = {path: sealed.get(str(path.relative_to(folder)), {}).get("modified_ns") for path in files}
    return all(path.stat().st_mtime_ns == at for path, at in sealed_at.items())


def wait_for_seal():
    until = time.monotonic() + 60
    while not is_sealed():
        if time.monotonic() > until:
            sys.exit("no seal within 60 seconds")
        time.sleep(0.02)


def hold():
    wait_for_seal()
    Path(holding).touch()
    while not stopped:
        time.sleep(0.05)


class Writer:
    """Writes the files of one epoch; stops for good at the one that is to be cut."""

    def __init__(self, epoch):
        self.nth = -1
        cut_epoch, nth, self.point = (options.cut if holding and options.cut else "-1:0:").split(":")
        self.cut = int(nth) if int(cut_epoch) == epoch else None
        if int(cut_epoch) in (epoch, epoch + 1):
            wait_for_seal()  # So that the two versions before are sealed.

    def is_cut_at(self, *points):
        return self.nth == self.cut and self.point in points

    def stop_at(self, *points):
        if self.is_cut_at(*points):
            Path(holding).touch()
            time.sleep(600)

    def write(self, path, content):
        path.parent.mkdir(exist_ok=True)
        self.nth += 1
        self.stop_at("before")
        with open(path, "wb") as file:
            if self.is_cut_at("half"):
                file.write(content[: len(content) // 2])
            if self.is_cut_at("half", "empty"):
                file.flush()
                self.stop_at("half", "empty")
            file.write(content)


def main():
    way = WAYS[options.habit](Path(os.environ["SPOTSWEEP_CHECKPOINTS"]))
    epoch = way.load()
    print(f"START after_epoch={epoch}", flush=True)
    if options.saves_on_sigterm:
        signal.signal(signal.SIGTERM, on_signal)
    for epoch in range(epoch + 1, 6):
        time.sleep(1.5 if holding and epoch - 1 == options.ready else 0.05)
        way.save(epoch, Writer(epoch))
        print(f"epoch={epoch} score={epoch}", flush=True)
        if holding and epoch == options.ready:
            Path(holding).touch()
        if holding and epoch == options.hold:
            hold()
            way.save(epoch + 1, Writer(epoch + 1))
            sys.exit(143)


main()
