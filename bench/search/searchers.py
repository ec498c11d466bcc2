"""Who suggests parameters: ours, and what people use instead."""

import json
import subprocess

import numpy as np

from tasks import Choice, Levels, Real, draw


class Random:
    def __init__(self, task, seed):
        self.space, self.generator = task.space, np.random.default_rng(seed)

    def ask(self, index):
        return draw(self.space, self.generator)

    def finished(self, trial):
        pass

    def reported(self, trial):
        """It has reached a rung and goes on."""

    def stopped(self, trial):
        pass


class Ours:
    """The crate `spotsweep-search`, through its example `suggestions`."""

    def __init__(self, task, seed, program, rungs=(), options=None):
        self.parameters, self.seed, self.rungs = task.space, seed, rungs
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.trials = {}
        dimensions = [dimension(parameter) for parameter in task.space]
        self.first = {"space": {"dimensions": dimensions, "conditions": []}}
        if options:
            self.first["options"] = options

    def ask(self, index):
        request = {**self.first, "trials": list(self.trials.values()), "seed": self.seed, "index": index}
        self.first = {}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.trials[index] = {"index": index, "point": answer["point"]}
        return {
            parameter.name: parameter.at(place) if isinstance(parameter, Real) else parameter.values[int(place)]
            for parameter, place in zip(self.parameters, answer["point"])
        }

    def finished(self, trial):
        self.trials[trial.index] |= self.reached(trial) | {"end": {"Finished": -trial.best}}

    def stopped(self, trial):
        self.trials[trial.index] |= self.reached(trial) | {"end": "Stopped"}

    def reported(self, trial):
        self.trials[trial.index] |= self.reached(trial)

    def reached(self, trial):
        return {"rungs": self.curve(trial), "pace": trial.pace()}

    def curve(self, trial):
        costs = -trial.values[: trial.epochs]
        return {
            str(rung): {
                "value": costs[rung - 1], "best": costs[:rung].min(), "mean": costs[:rung].mean(),
            }
            for rung in self.rungs if rung <= trial.epochs
        }

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def dimension(parameter):
    if isinstance(parameter, Real):
        return "Real"
    if isinstance(parameter, Levels):
        return {"Steps": {"positions": parameter.positions()}}
    return {"Choices": {"count": len(parameter.values)}}
