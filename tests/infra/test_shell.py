"""Shell under `pipefail`: no reader that may end before its writer, which then ends by SIGPIPE and fails the pipeline."""
import re
import subprocess
import unittest

from cfn import ROOT, below, names, template

# `grep -q` and `head` close the pipe as soon as they have seen enough.
EARLY = re.compile(r"(?<!\|)\|&?\s*(?:head\b|e?grep\s+(?:-\S+\s+)*(?:-[A-Za-z]*[qm]|--quiet\b|--silent\b|--max-count\b)|sed\b[^|]*?[\s\'\"\d;/]q(?![\w/])|awk\b[^|]*\bexit\b)")
SHEBANG = re.compile(r"^#!.*\b(?:ba|da|)sh\b")


def early_readers(script):
    """The lines that have one, joined where a backslash continues them; none where the shell ignores a failed writer."""
    if "pipefail" not in script:
        return []
    lines = script.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if not line.lstrip().startswith("#") and EARLY.search(line)]


def scripts():
    """Each script of the repository, and each in the templates: user data, and the parts of Image Builder's component."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        with (ROOT / name).open("rb") as file:
            first = file.readline(200).decode(errors="replace")
        if SHEBANG.match(first):
            yield name, (ROOT / name).read_text()
    for name in names():
        for text in below(template(name)):
            if isinstance(text, str) and "#!/" in text:
                yield name, text


class EarlyReaders(unittest.TestCase):
    def test_there_is_none(self):
        found = dict.fromkeys(name for name, _ in scripts())
        for name in (".ci/run", "infra/gpu-ami/verify.sh", "compute.yaml", "gpu-ami.yaml"):
            self.assertIn(name, found)
        for name, script in scripts():
            with self.subTest(name):
                self.assertEqual(early_readers(script), [])

    def test_what_counts_as_one(self):
        early = ["a | grep -q x", "a 2>&1 | grep -Eq x", "a | head -n 1", "a |head", "a | grep -i -m 1 x", "a \\\n  | grep --quiet x", "a | sed 3q", "a | awk '{print; exit}'"]
        whole = ["grep -q x <<<\"$a\"", "a | grep x", "a | tail -n 1", "# a | head", "a | sed 's/q/r/'", "a | xargs head", "a || head b"]
        for line in early:
            self.assertTrue(early_readers(f"set -o pipefail\n{line}\n"), line)
            self.assertFalse(early_readers(f"{line}\n"), line)
        for line in whole:
            self.assertFalse(early_readers(f"set -o pipefail\n{line}\n"), line)


if __name__ == "__main__":
    unittest.main()
