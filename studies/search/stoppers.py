"""Early stopping by the rules of the crate `spotsweep-search`."""

from program import Program
from searchers import curve

# The bands of min_iter 3 and eta 3, for 52 epochs.
BANDS = (3, 9, 27)
HYPERBAND = {"type": "hyperband", "bands": BANDS, "eta": 3.0, "strict": True}
INTERRUPTION = {"type": "interruption", "bands": BANDS, "eta": 3.0}


class Ours:
    """Judges a trial when it reaches a rung. The rule of interruptions judges only when it is called."""

    def __init__(self, program, rule):
        self.program, self.rule, self.curves = Program(program), rule, {}

    def next_epoch(self, trial, whole):
        return min([band for band in BANDS if trial.epochs < band < whole] + [whole])

    def stops(self, trial):
        self.curves[trial.index] = curve(trial, BANDS)
        return self.rule is HYPERBAND and trial.epochs in BANDS and self.judges(trial)

    def judges(self, trial):
        """Judges a trial by the last rung that it has reached."""
        own = self.curves[trial.index] = curve(trial, BANDS)
        others = [other for index, other in self.curves.items() if index != trial.index]
        verdict = self.program.ask("judge", rule=self.rule, own=own, peers=others)
        return bool(verdict and verdict["stops"])

    def ended(self, trial):
        pass

    def close(self):
        self.program.close()
