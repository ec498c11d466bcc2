"""SPOTSWEEP_TORCH_TESTS=1 python -m unittest test_train.py

A few steps on the CPU, on random images: that an interrupted training goes on as if nothing had been.
It needs PyTorch, several gigabytes, so it runs only where it is asked for. Nothing here has seen a GPU.
"""
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
ARGUMENTS = ["--device=cpu", "--stem=imagenet", "--synthetic=96", "--batch-size=16", "--epochs=3", "--lr=0.005"]
INTERRUPTED = 143


class Trial:
    """One trial with folders of its own."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.model = self.folder / "storage/5/model/model.pt"
        self.environment = os.environ | {
            "SPOTSWEEP_STORAGE": str(self.folder / "storage"),
            "SPOTSWEEP_CHECKPOINTS": str(self.folder / "checkpoints"),
            "AWS_BATCH_JOB_ARRAY_INDEX": "5",
            "OMP_NUM_THREADS": "1",
        }

    def start(self, arguments=ARGUMENTS):
        command = [sys.executable, "-u", HERE / "train.py", *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self):
        attempt = self.start()
        output, _ = attempt.communicate(timeout=300)
        assert attempt.returncode == 0, output
        return output

    def stop_after_first_epoch(self, signal_number):
        attempt = self.start()
        with attempt.stdout:
            for line in attempt.stdout:
                if line.startswith("epoch=1 "):
                    break
            attempt.send_signal(signal_number)
            rest = attempt.stdout.read()
        return attempt.wait(timeout=300), rest

    def weights(self):
        import torch

        state = torch.load(self.model, weights_only=True)
        digest = hashlib.sha256()
        for name in sorted(state):
            digest.update(state[name].numpy().tobytes())
        return digest.hexdigest()


@unittest.skipUnless(os.environ.get("SPOTSWEEP_TORCH_TESTS") == "1", "needs PyTorch: set SPOTSWEEP_TORCH_TESTS=1")
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
        self.assertEqual(self.trial.weights(), self.whole_weights, output)
        last = [line.split(" images_per_second")[0] for line in output.splitlines() if line.startswith("epoch=3")]
        self.assertIn(last[0], self.whole_output)

    def test_a_stop_loses_no_batch(self):
        code, rest = self.trial.stop_after_first_epoch(signal.SIGTERM)
        self.assertEqual(code, INTERRUPTED, rest)
        output = self.trial.finish()
        self.assertRegex(output, r"resuming after 1 epochs and \d+ batches")
        self.assert_same_end(output)

    def test_a_kill_loses_less_than_an_epoch(self):
        self.trial.stop_after_first_epoch(signal.SIGKILL)
        output = self.trial.finish()
        self.assertIn("resuming after 1 epochs and 0 batches", output)
        self.assert_same_end(output)

    def test_a_broken_checkpoint_is_passed_over(self):
        self.trial.finish()
        newest = sorted(self.trial.folder.glob("checkpoints/*/*.checkpoint"))[-1]
        newest.write_bytes(newest.read_bytes()[:-1])
        self.trial.model.unlink()
        output = self.trial.finish()
        self.assertIn(f"{newest} is broken", output)
        self.assertIn("resuming after 2 epochs", output)
        self.assert_same_end(output)

    def test_without_a_gpu_it_says_so_and_ends(self):
        self.trial.environment["CUDA_VISIBLE_DEVICES"] = ""
        attempt = self.trial.start(["--synthetic=32"])
        output, _ = attempt.communicate(timeout=300)
        self.assertEqual(attempt.returncode, 1)
        self.assertIn("no GPU is visible", output)


if __name__ == "__main__":
    unittest.main()
