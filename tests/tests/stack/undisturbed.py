"""Trains every trial of a sweep once more, undisturbed, and compares.

usage: undisturbed.py CODE RESULTS SCRATCH: the folder of train.py, the sweep's results, a folder for checkpoints.
Prints a list of {"index", "metrics" (of the undisturbed run), "same_model"}.
"""
import contextlib
import io
import json
import os
import sys
from pathlib import Path

code, results, scratch = (Path(argument) for argument in sys.argv[1:])
sys.path.insert(0, str(code))

import train  # before numpy: it says how many threads numpy may use
import numpy as np


def weights(path):
    with np.load(path) as model:
        return {name: model[name].tobytes() for name in model.files}


def undisturbed(trial):
    index = trial["index"]
    root = scratch / str(index)
    os.environ["SPOTSWEEP_CHECKPOINTS"] = str(root / "checkpoints")
    os.environ["SPOTSWEEP_STORAGE"] = str(root / "storage")
    os.environ["AWS_BATCH_JOB_ARRAY_INDEX"] = "0"
    parameters = trial["parameters"] | {"epoch_seconds": 0}  # its waits change nothing
    sys.argv = ["train.py"] + [f"--{name}={value}" for name, value in parameters.items()]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        train.main()
    last = [line for line in output.getvalue().splitlines() if line.startswith("epoch=")][-1]
    model = Path("model") / "model.npz"
    same = weights(root / "storage" / "0" / model) == weights(results / "trials" / str(index) / model)
    return {"index": index, "metrics": dict(pair.split("=") for pair in last.split()), "same_model": same}


if __name__ == "__main__":
    trials = [json.loads(line) for line in (results / "trials.jsonl").read_text().splitlines()]
    print(json.dumps([undisturbed(trial) for trial in trials]))
