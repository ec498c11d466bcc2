"""The compared methods: searcher, stopper, number of workers, and tasks."""

import dataclasses
import typing

import peers
import searchers
import simulate
import stoppers
import tasks

RATES = (0.5, 1.0, 2.0)


@dataclasses.dataclass
class Method:
    name: str
    searcher: typing.Callable
    stopper: typing.Callable = None
    workers: int = 16
    run_cap: int = 200
    # The number of runs of a task; slow peers have fewer.
    seeds: int = 10
    family: str = "lcbench"
    interruptions: typing.Callable = None

    def uses_program(self):
        return self.searcher in (ours, ours_with_rungs) or self.stopper in (hyperband, asked)

    def tasks(self, development):
        if self.family == "lcbench":
            return tasks.DEVELOPMENT if development else tasks.REPORTED
        return {"fcnet": tasks.FCNET, "mlp": tasks.MLP}[self.family]


def random(task, seed, program):
    return searchers.Random(task, seed)


def ours(task, seed, program):
    return searchers.Ours(task, seed, program)


def ours_with_rungs(task, seed, program):
    return searchers.Ours(task, seed, program, rungs=stoppers.BANDS)


def tpe(task, seed, program):
    return peers.Optuna(task, seed, "tpe")


def gp(task, seed, program):
    return peers.Optuna(task, seed, "gp")


def wandb(task, seed, program):
    return peers.Wandb(task, seed)


def hyperband(task, seed, program):
    return stoppers.Ours(program, stoppers.HYPERBAND)


def asked(task, seed, program):
    return stoppers.Ours(program, stoppers.INTERRUPTION)


def with_interruptions(rate, ends):
    def made(task, seed, stopper):
        return simulate.Interruptions(task, rate, seed, stopper.judges if ends else lambda trial: False)

    return made


def asha(**settings):
    return lambda task, seed, program: peers.ray_asha(seed, **settings)


def pruner(kind):
    return lambda task, seed, program: peers.optuna_pruner(seed, kind)


METHODS = [
    Method("random", random),
    Method("optuna-tpe", tpe),
    Method("wandb-bayes", wandb, run_cap=100, seeds=3),
    Method("optuna-gp", gp, run_cap=100, seeds=1),
    Method("ours", ours),
    # The method runs with `early_terminate: {type: interruption}`, and nothing is interrupted.
    Method("ours-rungs", ours_with_rungs, asked, seeds=5),
    Method("random-hyperband", random, hyperband),
    Method("random-asha-3-3", random, asha(grace_period=3, reduction_factor=3)),
    Method("random-asha", random, asha()),
    Method("random-halving", random, pruner("halving")),
    Method("random-median", random, pruner("median")),
    Method("optuna-tpe-hyperband", tpe, hyperband, seeds=3),
    Method("wandb-bayes-hyperband", wandb, hyperband, run_cap=100, seeds=1),
    Method("ours-hyperband", ours_with_rungs, hyperband),
    Method("random-64", random, workers=64),
    Method("optuna-tpe-64", tpe, workers=64, seeds=2),
    Method("ours-64", ours, workers=64),
    Method("ours-hyperband-64", ours_with_rungs, hyperband, workers=64, seeds=5),
    *(
        Method(f"interrupted-{rate}-{kind}", random, asked, seeds=5,
               interruptions=with_interruptions(rate, kind == "ended"))
        for rate in RATES for kind in ("moved", "ended")
    ),
    *(
        Method(f"{family}-{name}", searcher, run_cap=100, seeds=seeds, family=family)
        for family in ("fcnet", "mlp")
        for name, searcher, seeds in (
            ("random", random, 10), ("optuna-tpe", tpe, 5), ("wandb-bayes", wandb, 1), ("optuna-gp", gp, 1),
            ("ours", ours, 5),
        )
    ),
]
