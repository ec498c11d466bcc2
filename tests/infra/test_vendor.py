"""The copies of the AWS SDK's crates are what `vendor/operations.json` says."""
import json
import re
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVICES = json.loads((ROOT / "vendor/operations.json").read_text())
CALLERS = ["shared", "functions", "runner", "cli", "emulator", "local-stack", "tests", "bench"]


class Vendor(unittest.TestCase):
    def test_each_copy_has_its_version_and_its_operations(self):
        lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        for service, wanted in SERVICES.items():
            with self.subTest(service):
                folder = ROOT / "vendor" / service
                name = f"aws-sdk-{service}"
                self.assertEqual(tomllib.loads((folder / "Cargo.toml").read_text())["package"]["version"], wanted["version"])
                [locked] = [package for package in lock if package["name"] == name]
                self.assertEqual((locked["version"], locked.get("source")), (wanted["version"], None))
                operations = sorted(path.stem for path in (folder / "src/operation").glob("*.rs"))
                self.assertEqual(operations, sorted(wanted["operations"]))
                self.assertTrue((folder / "LICENSE").is_file())

    def test_every_copy_is_patched_in_and_listed(self):
        patch = tomllib.loads((ROOT / "Cargo.toml").read_text())["patch"]["crates-io"]
        patched = {name.removeprefix("aws-sdk-") for name in patch if name.startswith("aws-sdk-")}
        copied = {path.parent.name for path in (ROOT / "vendor").glob("*/Cargo.toml")}
        self.assertEqual((patched, copied), (set(SERVICES), set(SERVICES)))

    def test_every_operation_is_called(self):
        code = "".join(path.read_text() for folder in CALLERS for path in (ROOT / folder).rglob("*.rs"))
        for service, wanted in SERVICES.items():
            unused = [name for name in wanted["operations"] if not re.search(rf"\.{name}\(", code)]
            self.assertEqual(unused, [], service)


if __name__ == "__main__":
    unittest.main()
