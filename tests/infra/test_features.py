"""`cargo build` and `cargo test` compile the same dependencies with the same features, so that neither compiles again
what the other one has compiled: `cargo run --bin spotsweep -- demo`, then `tests/run`."""
import subprocess
import unittest

from cfn import ROOT


def features(edges):
    """The features of each package that is reached by these edges."""
    command = ["cargo", "tree", "--locked", "--workspace", "--edges", edges, "--prefix", "none", "--format", "{p}|{f}"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    # "(*)" ends the line of a package that has been listed before.
    return dict(line.removesuffix(" (*)").split("|") for line in lines if "|" in line)


class Features(unittest.TestCase):
    def test_tests_add_no_features_to_what_is_built(self):
        built, tested = features("normal,build"), features("normal,build,dev")
        self.assertGreater(len(built), 200)
        added = {package: (built[package], tested[package]) for package in built if built[package] != tested[package]}
        self.assertEqual(added, {}, "name what adds them in [dependencies] of tests/Cargo.toml")


if __name__ == "__main__":
    unittest.main()
