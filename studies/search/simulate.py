"""Simulates workers on a virtual clock: each asks for parameters, trains, reports every epoch, and asks again."""

import heapq

import numpy as np


class Trial:
    """The course of one trial."""

    def __init__(self, index, chosen, started, values, seconds):
        self.index, self.chosen, self.started, self.values = index, chosen, started, values
        # The times at which each epoch's value is reported.
        self.times = started + seconds
        self.epochs = 0
        self.moves = 0
        self.ended = None
        self.was_stopped = False

    @property
    def best(self):
        return float(self.values[: self.epochs].max())

    @property
    def is_whole(self):
        return self.epochs == len(self.values)

    def best_until(self, now):
        epochs = min(self.epochs, int(np.searchsorted(self.times, now, side="right")))
        return float(self.values[:epochs].max()) if epochs else float("-inf")

    def move(self, now, delay):
        """Continues on another instance, from the last reported epoch."""
        self.moves += 1
        self.times[self.times > now] += delay


class Result:
    """The trials of one sweep, in the order of their ends."""

    def __init__(self, task, trials):
        self.task = task
        self.trials = sorted(trials, key=lambda trial: (trial.ended, trial.index))

    def regret(self, count):
        """Returns the regret of the best value until `count` trials had ended; 0 if it is better than the best known."""
        now = self.trials[count - 1].ended
        return max(0.0, self.task.regret(max(trial.best_until(now) for trial in self.trials)))

    def share(self, until=float("inf")):
        """Returns the time that all workers have used, as a share of that of 200 full random trials."""
        used = sum(max(0.0, min(trial.ended, until) - trial.started) for trial in self.trials)
        return used / (200 * self.task.mean_time)

    def share_at_hit(self):
        """Returns when the best of 200 random trials was first reached, or None."""
        found = float("inf")
        for trial in self.trials:
            reached = np.flatnonzero(trial.values[: trial.epochs] >= self.task.target)
            if len(reached):
                found = min(found, float(trial.times[reached[0]]))
        return self.share(found) if np.isfinite(found) else None


class Interruptions:
    """Interruptions, `rate` of them per mean trial time. `ends` returns whether the interrupted trial ends. If not, it
    is moved, which takes a twentieth of a mean trial."""

    def __init__(self, task, rate, seed, ends):
        self.between, self.delay, self.ends = task.mean_time / rate, task.mean_time / 20, ends
        self.generator = np.random.default_rng([seed, 1])

    def after(self, now):
        return now + float(self.generator.exponential(self.between))


def simulate(task, searcher, stopper, workers, run_cap, interruptions=None):
    """Runs trials. `searcher` has ask(index), and gets finished(trial), stopped(trial) and reported(trial). `stopper`
    has the epochs at which it judges, and returns whether a trial ends there."""
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
        if interruptions:
            heapq.heappush(events, (interruptions.after(now), index, 0, 0))

    def schedule(trial):
        epoch = stopper.next_epoch(trial, len(trial.values)) if stopper else len(trial.values)
        heapq.heappush(events, (float(trial.times[epoch - 1]), trial.index, epoch, trial.moves))

    def end(trial, now):
        trial.ended = now
        if stopper:
            stopper.ended(trial)
        (searcher.stopped if trial.was_stopped else searcher.finished)(trial)
        start(now)

    def interrupt(trial, now):
        trial.epochs = int(np.searchsorted(trial.times, now, side="right"))
        if trial.epochs and interruptions.ends(trial):
            trial.was_stopped = True
            end(trial, now)
            return
        trial.move(now, interruptions.delay)
        schedule(trial)
        heapq.heappush(events, (interruptions.after(now), trial.index, 0, 0))

    for _ in range(workers):
        start(0.0)
    while events:
        now, index, epoch, moves = heapq.heappop(events)
        trial = trials[index]
        if trial.ended is not None or (epoch and moves != trial.moves):
            continue
        if not epoch:
            interrupt(trial, now)
            continue
        trial.epochs = epoch
        trial.was_stopped = bool(stopper and stopper.stops(trial)) and not trial.is_whole
        if trial.is_whole or trial.was_stopped:
            end(trial, now)
        else:
            searcher.reported(trial)
            schedule(trial)
    return Result(task, trials)
