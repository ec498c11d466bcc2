"""What a test needs of the machine: in CI, where SPOTSWEEP_CI is set, it fails without; elsewhere it is skipped."""
import os
import unittest


def need(missing):
    """`missing` says what is missing and how to get it; falsy where nothing is."""
    if missing and os.environ.get("SPOTSWEEP_CI"):
        raise AssertionError(f"this test needs {missing}; with SPOTSWEEP_CI unset it is skipped")
    if missing:
        raise unittest.SkipTest(f"needs {missing}")
