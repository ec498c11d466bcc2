"""Checkpoints that are whole or not there at all, whenever the machine dies.

A file is the SHA-256 of its content, then the content. It is written beside its place, forced to
disk and renamed, so that a torn file can only come from a failing disk; the digest finds that too.
"""
import hashlib
import io
import os

import torch

KEPT = 2  # one more than needed, in case the newest turns out broken
DIGEST_BYTES = 32


def save(folder, epoch, state):
    """Store `state` as the checkpoint of `epoch`, in place of an earlier one of the same epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    path = folder / f"epoch-{epoch:06}.checkpoint"
    beside = folder / f"{path.name}.{os.getpid()}.part"
    with open(beside, "wb") as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(beside, path)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # a rename is an entry of the folder, not of the file
    finally:
        os.close(descriptor)
    for old in listed(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)


def newest(folder, device):
    """The state of the newest whole checkpoint, or None."""
    for path in listed(folder):
        stored = path.read_bytes()
        content = stored[DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == stored[:DIGEST_BYTES]:
            # weights_only: a checkpoint is data, and runs no code.
            return torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        print(f"{path} is broken: trying the one before it", flush=True)
    return None


def listed(folder):
    """Checkpoint files, newest first."""
    return sorted(folder.glob("epoch-*.checkpoint"), reverse=True)
