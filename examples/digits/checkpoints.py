"""Checkpoints that are whole or not there at all, whenever the machine dies.

A file is the SHA-256 of its content, then the content. It is written beside its place, forced to
disk and renamed, so that a torn file can only come from a failing disk; the digest finds that too.
"""
import hashlib
import os
import pickle

KEPT = 2  # one more than needed, in case the newest turns out broken
DIGEST_BYTES = 32


def save(folder, epoch, state):
    """Store `state` as the checkpoint of `epoch`, in place of an earlier one of the same epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    content = pickle.dumps(state)
    path = folder / f"epoch-{epoch:06}.checkpoint"
    beside = folder / f"{path.name}.{os.getpid()}.part"
    with open(beside, "wb") as file:
        file.write(hashlib.sha256(content).digest() + content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(beside, path)
    sync_folder(folder)
    for old in listed(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def newest(folder):
    """The state of the newest whole checkpoint, or None."""
    for path in listed(folder):
        data = path.read_bytes()
        content = data[DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == data[:DIGEST_BYTES]:
            return pickle.loads(content)
        print(f"{path} is broken: trying the one before it", flush=True)
    return None


def listed(folder):
    """Checkpoint files, newest first."""
    return sorted(folder.glob("epoch-*.checkpoint"), reverse=True)


def sync_folder(folder):
    """Force a rename to disk: it is an entry of the folder, not of the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
