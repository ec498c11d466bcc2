"""Workers on a virtual clock: each asks for parameters, trains, reports at every epoch, and asks again."""

import heapq

import numpy as np


class Trial:
    """What became of a trial."""

    def __init__(self, index, chosen, started, values, seconds):
        self.index, self.chosen, self.started = index, chosen, started
        self.values, self.seconds = values, seconds
        self.epochs = 0
        self.ended = None
        self.was_stopped = False

    @property
    def best(self):
        return float(self.values[: self.epochs].max())

    def best_until(self, now):
        epochs = min(self.epochs, int(np.searchsorted(self.seconds, now - self.started, side="right")))
        return float(self.values[:epochs].max()) if epochs else float("-inf")


class Result:
    """The trials of one sweep, in the order of their ends."""

    def __init__(self, task, trials):
        self.task = task
        self.trials = sorted(trials, key=lambda trial: (trial.ended, trial.index))

    def regret(self, count):
        """Of the best value that was reported until `count` trials had ended."""
        now = self.trials[count - 1].ended
        reported = (trial.best_until(now) for trial in self.trials)
        return max(0.0, self.task.regret(max(reported)))

    def share(self, until=float("inf")):
        """The time that all workers have used, of what 200 full random trials take."""
        used = sum(max(0.0, min(trial.ended, until) - trial.started) for trial in self.trials)
        return used / (200 * self.task.mean_time)

    def share_at_hit(self):
        """When the best of 200 random trials was first reported; None where it never was."""
        found = float("inf")
        for trial in self.trials:
            reached = np.flatnonzero(trial.values[: trial.epochs] >= self.task.target)
            if len(reached):
                found = min(found, trial.started + float(trial.seconds[reached[0]]))
        return self.share(found) if np.isfinite(found) else None


def simulate(task, searcher, stopper, workers, run_cap):
    """`searcher` has ask(index), finished(trial) and stopped(trial); `stopper` says at which epochs it looks, and
    whether a trial ends there."""
    events, trials = [], []

    def start(now):
        if len(trials) == run_cap:
            return
        index = len(trials)
        chosen = searcher.ask(index)
        values, seconds = task.run(chosen)
        trial = Trial(index, chosen, now, values, seconds)
        trials.append(trial)
        schedule(trial)

    def schedule(trial):
        epoch = stopper.next_epoch(trial, len(trial.values)) if stopper else len(trial.values)
        heapq.heappush(events, (trial.started + float(trial.seconds[epoch - 1]), trial.index, epoch))

    for _ in range(workers):
        start(0.0)
    while events:
        now, index, epoch = heapq.heappop(events)
        trial = trials[index]
        trial.epochs = epoch
        is_whole = epoch == len(trial.values)
        trial.was_stopped = bool(stopper and stopper.stops(trial)) and not is_whole
        if not is_whole and not trial.was_stopped:
            searcher.reported(trial)
            schedule(trial)
            continue
        trial.ended = now
        if stopper:
            stopper.ended(trial)
        (searcher.stopped if trial.was_stopped else searcher.finished)(trial)
        start(now)
    return Result(task, trials)
