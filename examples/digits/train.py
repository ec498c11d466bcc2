"""Train a small neural network on handwritten digits, and survive interruptions.

The same arguments give the same model, bit for bit, however often training was stopped and resumed.
"""
import os

# One thread per trial, to be set before numpy loads: many trials share a machine, and the order
# in which threads add up floating point numbers would change the result.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import signal
import sys
import time
from pathlib import Path

import numpy as np

import checkpoints
import digits
from network import Network

INTERRUPTED = 128 + signal.SIGTERM

stop_requested = False


def on_sigterm(_signal, _frame):
    global stop_requested
    stop_requested = True


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01, help="Adam's learning rate")
    parser.add_argument("--hidden", type=int, default=64, help="units of the hidden layer")
    parser.add_argument("--alpha", type=float, default=0.0001, help="weight of the L2 penalty")
    parser.add_argument("--batch_size", "--batch-size", type=int, default=64, help="images per step")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the training images")
    parser.add_argument("--seed", type=int, default=7, help="of weights, split and order")
    parser.add_argument(
        "--epoch_seconds", "--epoch-seconds", type=float, default=0, help="least time of an epoch, as of a larger model"
    )
    arguments = parser.parse_args()
    for name in ("lr", "hidden", "batch_size", "epochs"):
        if getattr(arguments, name) <= 0:
            parser.error(f"--{name} must be above zero")
    return arguments


def checkpoint_folder(arguments):
    """A folder of its own for each set of arguments, as trials run by hand share their parent."""
    parent = Path(os.environ.get("SPOTSWEEP_CHECKPOINTS", "/dltraining/checkpoints"))
    return parent / "-".join(f"{name}_{value}" for name, value in vars(arguments).items())


def fresh_state(arguments, images):
    """Everything that the rest of the training depends on: what a checkpoint holds."""
    random = np.random.default_rng(arguments.seed)
    return {
        "epoch": 0,  # whole epochs behind us
        "batch": 0,  # batches of the current epoch behind us
        "order": random.permutation(len(images)),
        "random": random,
        "metrics": None,
        "model": Network(
            digits.PIXELS,
            arguments.hidden,
            digits.CLASSES,
            lr=arguments.lr,
            alpha=arguments.alpha,
            seed=arguments.seed,
        ),
    }


def train_epoch(state, size, images, labels):
    """Go on in the current epoch until it ends or a stop is requested; whether it ended."""
    batches = len(images) // size  # what is left over differs each time, the order being new
    while state["batch"] < batches and not stop_requested:
        start = state["batch"] * size
        chosen = state["order"][start : start + size]
        state["model"].train(images[chosen], labels[chosen])
        state["batch"] += 1
    return state["batch"] == batches


def wait_until(time_of_end):
    while time.monotonic() < time_of_end and not stop_requested:
        time.sleep(0.01)


def line(state):
    accuracy, loss = state["metrics"]
    return f"epoch={state['epoch']} val_accuracy={accuracy:.4f} val_loss={loss:.4f}"


def save_model(model):
    storage = Path(os.environ.get("SPOTSWEEP_STORAGE", "/storage"))
    folder = storage / os.environ.get("AWS_BATCH_JOB_ARRAY_INDEX", "0") / "model"
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.npz")
    print(f"saved {folder / 'model.npz'}")


def main():
    signal.signal(signal.SIGTERM, on_sigterm)
    arguments = parse_arguments()
    folder = checkpoint_folder(arguments)
    images, labels, held_images, held_labels = digits.load(arguments.seed)
    if arguments.batch_size > len(images):
        sys.exit(f"--batch_size is {arguments.batch_size}, but there are only {len(images)} training images")

    state = checkpoints.newest(folder) or fresh_state(arguments, images)
    if state["epoch"] or state["batch"]:
        # With the metrics so far, the log of this attempt tells the whole result; only a line that
        # begins with `epoch=` is an epoch trained here.
        so_far = f": {line(state)}" if state["metrics"] else ""
        print(f"resuming after {state['epoch']} epochs and {state['batch']} batches{so_far}", flush=True)

    while state["epoch"] < arguments.epochs:
        time_of_end = time.monotonic() + arguments.epoch_seconds
        if not train_epoch(state, arguments.batch_size, images, labels):
            checkpoints.save(folder, state["epoch"], state)
            print(f"interrupted, {state['batch']} batches into the epoch; progress is saved", flush=True)
            sys.exit(INTERRUPTED)
        wait_until(time_of_end)
        state["epoch"] += 1
        state["batch"] = 0
        state["order"] = state["random"].permutation(len(images))
        state["metrics"] = state["model"].evaluate(held_images, held_labels)
        checkpoints.save(folder, state["epoch"], state)
        print(line(state), flush=True)
    save_model(state["model"])


if __name__ == "__main__":
    main()
