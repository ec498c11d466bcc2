"""The peers: suggestions by Optuna and by W&B's own code, early stopping by Ray and Optuna."""

import warnings

import numpy as np

from tasks import Choice, Levels, Real


class Optuna:
    """Optuna's `ask` and `tell`."""

    def __init__(self, task, seed, kind):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        # Since 5.0.0, TPE is multivariate and has its constant liar by default, as recommended for parallel workers.
        sampler = {
            "tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "gp": lambda: optuna.samplers.GPSampler(seed=seed),
        }[kind]()
        self.optuna, self.parameters, self.asked = optuna, task.space, {}
        self.study = optuna.create_study(direction="maximize", sampler=sampler, pruner=optuna.pruners.NopPruner())
        self.distributions = {parameter.name: self.distribution(parameter) for parameter in task.space}

    def distribution(self, parameter):
        distributions = self.optuna.distributions
        if isinstance(parameter, Real):
            return distributions.FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        if isinstance(parameter, Choice):
            return distributions.CategoricalDistribution(parameter.values)
        if parameter.is_range:
            return distributions.IntDistribution(parameter.values[0], parameter.values[-1], log=parameter.log)
        return distributions.IntDistribution(0, len(parameter.values) - 1)

    def ask(self, index):
        trial = self.asked[index] = self.study.ask(self.distributions)
        return {
            parameter.name: parameter.values[trial.params[parameter.name]]
            if isinstance(parameter, Levels) and not parameter.is_range else trial.params[parameter.name]
            for parameter in self.parameters
        }

    def finished(self, trial):
        self.study.tell(self.asked[trial.index], trial.best)

    def reported(self, trial):
        pass

    def stopped(self, trial):
        asked = self.asked[trial.index]
        for epoch, value in enumerate(trial.values[: trial.epochs], 1):
            asked.report(float(value), epoch)
        self.study.tell(asked, state=self.optuna.trial.TrialState.PRUNED)


class Wandb:
    """`bayes` of the package `sweeps`; which version W&B's servers run is not known."""

    def __init__(self, task, seed):
        warnings.simplefilter("ignore")
        from sweeps import run
        from sweeps.bayes_search import bayes_search_next_run

        # The peer draws from numpy's global generator.
        np.random.seed(seed)
        self.next, self.run = bayes_search_next_run, run
        self.runs, self.parameters = [], task.space
        self.config = {
            "method": "bayes",
            "metric": {"name": "value", "goal": "maximize"},
            "parameters": {parameter.name: self.written(parameter) for parameter in task.space},
        }

    def written(self, parameter):
        if isinstance(parameter, Real):
            kind = "log_uniform_values" if parameter.log else "uniform"
            return {"distribution": kind, "min": parameter.low, "max": parameter.high}
        if isinstance(parameter, Levels) and parameter.is_range:
            kind = "q_log_uniform_values" if parameter.log else "int_uniform"
            return {"distribution": kind, "min": parameter.values[0], "max": parameter.values[-1]}
        return {"values": parameter.values}

    def ask(self, index):
        run = self.next(self.runs, self.config)
        run.state, run.name = self.run.RunState.running, str(index)
        self.runs.append(run)
        chosen = {parameter.name: run.config[parameter.name]["value"] for parameter in self.parameters}
        for parameter in self.parameters:
            if isinstance(parameter, Levels) and parameter.is_range:
                low, high = parameter.values[0], parameter.values[-1]
                chosen[parameter.name] = min(max(int(chosen[parameter.name]), low), high)
        return chosen

    def finished(self, trial):
        self.end(trial, self.run.RunState.finished)

    def reported(self, trial):
        pass

    def stopped(self, trial):
        self.end(trial, self.run.RunState.killed)

    def end(self, trial, state):
        run = self.runs[trial.index]
        run.state, run.history = state, [{"value": trial.best}]


class EveryEpoch:
    """A rule of a library, which gets each epoch's value and returns whether the trial stops."""

    def __init__(self, report):
        self.report, self.given = report, {}

    def next_epoch(self, trial, whole):
        return min(trial.epochs + 1, whole)

    def stops(self, trial):
        return self.report(trial, trial.epochs, float(trial.values[trial.epochs - 1]))

    def ended(self, trial):
        pass


def ray_asha(seed, **settings):
    """Ray's scheduler, as its controller calls it."""
    warnings.simplefilter("ignore")
    from types import SimpleNamespace

    from ray.tune.schedulers import AsyncHyperBandScheduler

    scheduler = AsyncHyperBandScheduler("epoch", "value", "max", max_t=52, **settings)
    known = {}

    def report(trial, epoch, value):
        if trial.index not in known:
            known[trial.index] = SimpleNamespace(trial_id=str(trial.index))
            scheduler.on_trial_add(None, known[trial.index])
        return scheduler.on_trial_result(None, known[trial.index], {"epoch": epoch, "value": value}) == "STOP"

    return EveryEpoch(report)


def optuna_pruner(seed, kind):
    """A pruner of Optuna, for trials whose parameters come from elsewhere."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = {"halving": optuna.pruners.SuccessiveHalvingPruner, "median": optuna.pruners.MedianPruner}[kind]()
    study = optuna.create_study(direction="maximize", pruner=pruner)
    known = {}

    def report(trial, epoch, value):
        asked = known.setdefault(trial.index, None) or study.ask()
        known[trial.index] = asked
        asked.report(value, epoch)
        return asked.should_prune()

    stopper = EveryEpoch(report)

    def ended(trial):
        states = optuna.trial.TrialState
        if trial.was_stopped:
            study.tell(known[trial.index], state=states.PRUNED)
        else:
            study.tell(known[trial.index], trial.best)

    stopper.ended = ended
    return stopper
