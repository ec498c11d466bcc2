"""Words of retired metaphors are in no comment, message or name: docs/glossary.md has the terms in their place."""
import re
import subprocess
import unittest
from pathlib import Path

from cfn import ROOT

# Each stood for something that has a plain term: an injected interruption, an event, a fault, a forged request.
RETIRED = {
    "anew", "dear", "dearer", "dearest", "happening", "happenings", "heard", "hears", "heed", "heeded", "heeds", "mend",
    "mended", "mending", "mends", "mishap", "mishaps", "nobody", "reckon", "reckoned", "reckons", "sabotage", "spoil",
    "spoiled", "spoils", "spoilt", "storm", "stranger", "strangers", "strike", "strikes", "striking", "struck", "told",
    "whom",
}
# The glossary lists what terms were called before, this file lists the words, and the licences are not ours.
EXEMPT = {"docs/glossary.md", "tests/infra/test_words.py", "LICENSE-APACHE", "LICENSE-MIT"}
TEXTS = {".rs", ".py", ".sh", ".md", ".toml", ".txt", ".yaml", ".yml", ".js", ".css", ""}
DATA = ("tests/data/", "studies/data/")
# A word of a sentence, or a part of a name in snake_case or CamelCase.
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def retired(text):
    """Number and content of each line with a retired word, and the word."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in WORD.findall(line):
            if word.lower() in RETIRED:
                yield number, word, line.strip()


def tracked():
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in named.split("\0"):
        file = Path(ROOT, name)
        if name and not name.startswith(DATA) and name not in EXEMPT and file.suffix in TEXTS and file.is_file():
            yield name, file.read_text(errors="replace")


class Words(unittest.TestCase):
    def test_no_retired_word_is_used(self):
        for name, text in tracked():
            with self.subTest(name):
                self.assertEqual(list(retired(text)), [], "docs/glossary.md has the term")

    def test_words_are_found_in_sentences_and_names(self):
        text = "// Nobody is told.\nfn strike_check() -> StartsAnew {\nconst MOST_STRIKES: u32 = 1;\n// A restriction, foretold.\n"
        self.assertEqual([(number, word) for number, word, _ in retired(text)],
                         [(1, "Nobody"), (1, "told"), (2, "strike"), (2, "Anew"), (3, "STRIKES")])


if __name__ == "__main__":
    unittest.main()
