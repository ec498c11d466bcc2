"""The searchers: ours, and random search."""

import numpy as np

from program import Program
from tasks import Choice, Levels, Real, draw


class Random:
    def __init__(self, task, seed):
        self.space, self.generator = task.space, np.random.default_rng(seed)

    def ask(self, index):
        return draw(self.space, self.generator)

    def finished(self, trial):
        pass

    def reported(self, trial):
        """Notes that a trial has reached a rung and goes on."""

    def stopped(self, trial):
        pass


def curve(trial, rungs):
    """Returns the stored part of a trial: its costs at the rungs that it has reached."""
    costs = -trial.values[: trial.epochs]
    return {
        str(rung): {"value": costs[rung - 1], "best": costs[:rung].min(), "mean": costs[:rung].mean()}
        for rung in rungs if rung <= trial.epochs
    }


class Ours:
    def __init__(self, task, seed, program, rungs=()):
        self.parameters, self.seed, self.rungs = task.space, seed, rungs
        self.program = Program(program)
        self.trials = {}
        dimensions = [dimension(parameter) for parameter in task.space]
        self.program.say("begin", space={"dimensions": dimensions, "conditions": []})

    def ask(self, index):
        answer = self.program.ask("suggest", trials=list(self.trials.values()), seed=self.seed, index=index)
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
        return {"rungs": curve(trial, self.rungs)}

    def close(self):
        self.program.close()


def dimension(parameter):
    if isinstance(parameter, Real):
        return "Real"
    if isinstance(parameter, Levels):
        return {"Steps": {"positions": parameter.positions()}}
    return {"Choices": {"count": len(parameter.values)}}
