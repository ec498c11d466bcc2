"""A training that saves a checkpoint, and then hangs, unless it begins from one.

As its argument says, SIGUSR1 dumps its stacks, makes it save and exit with 0 as scripts for Slurm do, or is not handled.
"""
import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

CHECKPOINT = Path(os.environ["SPOTSWEEP_CHECKPOINTS"], "epoch-1")


def on_term(*_):
    print("asked to stop", flush=True)
    sys.exit(0)


def waits_for_a_peer():
    while True:
        time.sleep(0.1)


way = sys.argv[1]
if way == "dumps":
    faulthandler.register(signal.SIGUSR1, all_threads=True)
if way == "exits":
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
signal.signal(signal.SIGTERM, on_term)
if CHECKPOINT.exists():
    print("goes on", flush=True)
    sys.exit(0)
CHECKPOINT.write_text("1")
print("epoch=1 score=1", flush=True)
waits_for_a_peer()
