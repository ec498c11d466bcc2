"""python -m unittest test_train.py: an interrupted training ends in the same model, bit for bit."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ARGUMENTS = ["--lr=0.02", "--hidden=128", "--epochs=6", "--batch-size=8"]
INTERRUPTED = 143
INTERRUPTIONS = 4


class Trial:
    """One trial with a storage and a checkpoint folder of its own."""

    def __init__(self, folder):
        self.checkpoints = Path(folder, "checkpoints")
        self.model = Path(folder, "storage", "5", "model", "model.npz")
        self.environment = os.environ | {
            "SPOTSWEEP_STORAGE": str(Path(folder, "storage")),
            "SPOTSWEEP_CHECKPOINTS": str(self.checkpoints),
            "AWS_BATCH_JOB_ARRAY_INDEX": "5",
        }

    def start(self, *arguments):
        command = [sys.executable, HERE / "train.py", *(arguments or ARGUMENTS)]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, *arguments):
        attempt = self.start(*arguments)
        output, _ = attempt.communicate(timeout=300)
        assert attempt.returncode == 0, output
        return output

    def stop_after(self, lines, seconds, signal_number):
        """Signal an attempt `seconds` after its first `lines` lines; its exit code."""
        attempt = self.start()
        with attempt.stdout:
            for _ in range(lines):
                attempt.stdout.readline()
            time.sleep(seconds)
            attempt.send_signal(signal_number)
            attempt.stdout.read()
        return attempt.wait(timeout=300)

    def weights(self):
        with np.load(self.model) as model:
            return {name: model[name].tobytes() for name in model.files}

    def saved(self):
        return sorted(self.checkpoints.glob("*/*.checkpoint"))


def epochs(output):
    """The lines of the epochs that were trained, not those that were only read back."""
    return [line for line in output.splitlines() if line.startswith("epoch=")]


class Interruptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(folder)
            cls.whole_output = trial.finish()
            cls.whole_weights = trial.weights()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trial = Trial(folder.name)

    def assert_same_end(self, output):
        self.assertTrue(self.trial.weights() == self.whole_weights, output)
        self.assertEqual(self.last_metrics(output), self.last_metrics(self.whole_output))

    def last_metrics(self, output):
        return re.findall("epoch=6 .*", output)

    def interrupt_until_done(self, signal_number, stopped_code):
        seed = random.randrange(2**32)
        chance = random.Random(seed)
        for _ in range(INTERRUPTIONS):
            code = self.trial.stop_after(chance.randrange(1, 5), chance.uniform(0, 0.3), signal_number)
            # The default action where Python is not listening: while it loads, and in its very last moments.
            self.assertIn(code, (0, stopped_code, -signal_number), f"seed {seed}")
            if code == 0:
                break
        self.assert_same_end(self.trial.finish())

    def test_killed_at_random_moments(self):
        self.interrupt_until_done(signal.SIGKILL, -signal.SIGKILL)

    def test_asked_to_stop_at_random_moments(self):
        self.interrupt_until_done(signal.SIGTERM, INTERRUPTED)

    def test_a_stop_loses_no_batch(self):
        code = self.trial.stop_after(2, 0, signal.SIGTERM)
        self.assertEqual(code, INTERRUPTED)
        output = self.trial.finish()
        self.assertRegex(output, r"resuming after 2 epochs and \d+ batches")
        self.assert_same_end(output)

    def test_a_copy_of_the_checkpoints_goes_on_anywhere(self):
        """As on another instance: a new root, other inodes, and each epoch trained once in all."""
        self.trial.stop_after(2, 0.01, signal.SIGTERM)
        with tempfile.TemporaryDirectory() as folder:
            elsewhere = Trial(folder)
            shutil.copytree(self.trial.checkpoints, elsewhere.checkpoints)
            output = elsewhere.finish()
            self.assertEqual(elsewhere.weights(), self.whole_weights, output)
        whole = epochs(self.whole_output)
        done = int(re.search(r"resuming after (\d+) epochs", output)[1])
        self.assertGreaterEqual(done, 2)
        self.assertEqual(epochs(output), whole[done:])

    def test_a_broken_checkpoint_is_passed_over(self):
        self.trial.stop_after(3, 0, signal.SIGKILL)
        newest = self.trial.saved()[-1]
        newest.write_bytes(newest.read_bytes()[:-1])
        output = self.trial.finish()
        self.assertIn(f"{newest} is broken", output)
        self.assertIn("resuming after", output)
        self.assert_same_end(output)

    def test_other_arguments_start_afresh(self):
        self.trial.finish(*ARGUMENTS[:-1], "--batch-size=32")
        self.trial.finish(*ARGUMENTS, "--epochs=7")
        output = self.trial.finish()
        self.assertNotIn("resuming", output)
        self.assert_same_end(output)


if __name__ == "__main__":
    unittest.main()
