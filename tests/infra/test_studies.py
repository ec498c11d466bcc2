"""The studies are a workspace of their own: the product does not compile them, and they compile no SDK of AWS."""
import subprocess
import tomllib
import unittest

from cfn import ROOT


def locked(file):
    packages = tomllib.loads((ROOT / file).read_text())["package"]
    return {(package["name"], package["version"], package.get("checksum")) for package in packages}


def command_line(*features):
    """The crates that the command line links."""
    tree = ["cargo", "tree", "--locked", "--package", "spotsweep-cli", "--edges", "normal", "--prefix", "none", *features]
    lines = subprocess.run(tree, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0] for line in lines if line}


class Studies(unittest.TestCase):
    def test_what_both_workspaces_use_has_one_version(self):
        own = {package for package in locked("studies/Cargo.lock") if package[0] == "spotsweep-studies"}
        self.assertEqual(len(own), 1)
        self.assertEqual(locked("studies/Cargo.lock") - own - locked("Cargo.lock"), set(), "CONTRIBUTING.md says what to do")

    def test_the_product_does_not_compile_them(self):
        self.assertEqual(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["exclude"], ["studies"])
        self.assertNotIn("spotsweep-studies", {name for name, *_ in locked("Cargo.lock")})

    def test_they_compile_no_sdk(self):
        names = [name for name, *_ in locked("studies/Cargo.lock")]
        self.assertEqual([name for name in names if name.startswith(("aws-sdk-", "aws-smithy-", "aws-config"))], [])

    def test_the_command_line_links_the_world_only_for_the_local_stack(self):
        local = {"spotsweep-world", "spotsweep-emulator", "spotsweep-local-stack"}
        self.assertLess(local, command_line())
        self.assertEqual(command_line("--no-default-features") & (local | {"spotsweep-simulation"}), set())
        self.assertNotIn("spotsweep-simulation", command_line())


if __name__ == "__main__":
    unittest.main()
