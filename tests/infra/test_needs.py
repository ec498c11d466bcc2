"""No test skips by itself: tests/needs and needs.py decide for all."""
import os
import re
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from cfn import ROOT
from needs import need

SKIPS = re.compile(r'"skipped: |#\[ignore|\bskipTest\(|\bSkipTest\b|\bunittest\.skip')
# The last is opt-in: several gigabytes of PyTorch, which .ci/run installs only where asked for.
DECIDE = {"tests/needs/src/lib.rs", "tests/infra/needs.py", "examples/cifar10-resnet50/test_train.py"}


class Needs(unittest.TestCase):
    def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(self):
        with mock.patch.dict(os.environ, {"SPOTSWEEP_CI": "1"}):
            need(None)
            self.assertRaisesRegex(AssertionError, "a unicorn", need, "a unicorn")
        with mock.patch.dict(os.environ, {"SPOTSWEEP_CI": ""}):
            self.assertRaisesRegex(unittest.SkipTest, "a unicorn", need, "a unicorn")

    def test_no_other_place_skips(self):
        listed = subprocess.run(["git", "ls-files", "*/tests/*.rs", "tests/*.rs", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True)
        files = set(listed.stdout.split()) - DECIDE - {str(Path(__file__).resolve().relative_to(ROOT))}
        self.assertGreater(len(files), 50)
        for file in sorted(files):
            for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
                self.assertIsNone(SKIPS.search(line), f"{file}:{number}: let tests/needs or needs.py decide")


if __name__ == "__main__":
    unittest.main()
