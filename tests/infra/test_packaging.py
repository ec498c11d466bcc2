"""`sam build` of the whole deployment, with a stand-in for the compiler: SAM_CLI names the program."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from cfn import INFRA, Loader, filled, of_type, template
from needs import need

# What `cargo lambda build` leaves, of a function that is in the folder where it is called.
CARGO_LAMBDA = """#!/bin/sh
folder="$CARGO_TARGET_DIR/lambda/$(basename "$PWD")"
mkdir -p "$folder"
echo "$(basename "$PWD") $*" | tee -a "$CALLS" >"$folder/bootstrap"
"""


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need("SAM_CLI" not in os.environ and "the SAM CLI (pip install aws-sam-cli, and set SAM_CLI to it)")

    def build(self, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        programs, target, calls = (Path(folder.name, name) for name in ("programs", "target", "calls"))
        programs.mkdir()
        (programs / "cargo-lambda").write_text(CARGO_LAMBDA)
        (programs / "cargo-lambda").chmod(0o755)
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(target), "CALLS": str(calls),
            "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none",
        }
        out = Path(folder.name, "out")
        command = [os.environ["SAM_CLI"], "build", "--build-dir", out, *arguments]
        done = subprocess.run(command, cwd=INFRA, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out, calls.read_text().splitlines()

    def test_every_template_and_every_function_is_in_the_package(self):
        out, calls = self.build()
        functions = of_type(template("control-plane.yaml"), "AWS::Serverless::Function")
        for name, function in functions.items():
            built = (out / "ControlPlane" / name / "bootstrap").read_text()
            self.assertEqual(built.split()[0], filled(function["FunctionName"], NamePrefix=""), "another function's program")
        self.assertEqual(len(calls), len(functions))
        for call in calls:
            self.assertTrue(call.endswith("lambda build --release --arm64"), call)
        whole = yaml.load((out / "template.yaml").read_text(), Loader)
        for name, properties in of_type(whole, "AWS::Serverless::Application").items():
            self.assertEqual(properties["Location"], f"{name}/template.yaml")
            self.assertTrue((out / properties["Location"]).exists())

    def test_the_other_processor_is_one_parameter(self):
        _, calls = self.build("--parameter-overrides", "Architecture=x86_64")
        for call in calls:
            self.assertTrue(call.endswith("lambda build --release"), call)


if __name__ == "__main__":
    unittest.main()
