"""docs/aws-facts.md: each citation of a fact has the fact, each fact has its anchor and its source."""
import re
import subprocess
import unittest
from pathlib import Path

from cfn import ROOT

PAGE = ROOT / "docs/aws-facts.md"
FACT = re.compile(r'<a id="fact-(\d+)"></a>\n### (\d+)\. [^\n]+\n(.*?)(?=\n<a id=|\n## |\Z)', re.DOTALL)
SOURCE = re.compile(r"^\*Source:\* .*(https://|Model, )", re.MULTILINE)
# "fact 9", "facts 9 and 18", "Facts 9, 18 and 44", "facts 37–45"; a line's end may stand between the words.
GAP = r"[\s/#*!]+"
CITATION = re.compile(rf"\b[Ff]act(s?){GAP}(\d+(?:(?:\s*[,–-]\s*|{GAP}(?:and|or|to){GAP})\d+)*)")
LINK = re.compile(r"\[fact (\d+)\]\(([^)#]*)#fact-(\d+)\)")
TEXTS = {".rs", ".md", ".toml", ".py", ".sh", ".yaml", ".yml", ".json", ".txt", ".cjs", ".html", ".js", ".css", ""}


def numbers(cited):
    """The facts of a citation, those between the ends of a range too."""
    found = set()
    for first, last in re.findall(r"(\d+)(?:(?:\s*[–-]\s*|\s+to\s+)(\d+))?", cited):
        found.update(range(int(first), int(last or first) + 1))
    return found


def citations(text):
    """Line number and facts of each citation, and whether it says "facts"."""
    for match in CITATION.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, numbers(match[2]), bool(match[1])


def broken_links(file, text):
    """Citations in a document that are no link to the anchor on the page."""
    for match in LINK.finditer(text):
        target = (file.parent / match[2]).resolve() if match[2] else file
        if match[1] != match[3] or target != PAGE:
            yield f"{file.relative_to(ROOT)}: {match[0]} does not lead to docs/aws-facts.md#fact-{match[1]}"
    for line, facts, _ in citations(LINK.sub("", text)):
        yield f"{file.relative_to(ROOT)}:{line}: write fact {min(facts)} as [fact {min(facts)}](…/aws-facts.md#fact-{min(facts)})"


def tracked():
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = (ROOT / name for name in named.split("\0") if name)
    return [file for file in files if file.suffix in TEXTS and file.is_file() and file != Path(__file__).resolve()]


class Facts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = PAGE.read_text()
        cls.facts = {int(anchor): (int(title), body) for anchor, title, body in FACT.findall(cls.page)}

    def test_each_citation_has_its_fact(self):
        cited = 0
        for file in tracked():
            for line, facts, plural in citations(file.read_text(errors="replace")):
                cited += len(facts)
                missing = sorted(facts - self.facts.keys())
                with self.subTest(file=file.relative_to(ROOT), line=line):
                    self.assertEqual(missing, [], "docs/aws-facts.md has no such fact")
                    self.assertEqual(plural, len(facts) > 1, "write \"fact 9\", and \"facts 9 and 18\"")
        self.assertGreater(cited, 100, "the citations are not found any more")

    def test_documents_link_to_the_fact(self):
        for file in tracked():
            if file.suffix == ".md" and file != PAGE:
                self.assertEqual(list(broken_links(file, file.read_text())), [])

    def test_each_fact_has_its_anchor_and_a_source(self):
        self.assertEqual(len(self.facts), self.page.count("\n### "), "a fact lacks its anchor, or two have the same one")
        for anchor, (title, body) in self.facts.items():
            with self.subTest(fact=anchor):
                self.assertEqual(anchor, title, "anchor and title differ")
                self.assertRegex(body, SOURCE, "no source")

    def test_citations_are_read_in_all_their_forms(self):
        forms = {
            "see fact 9.": {9}, "(facts 9, 44)": {9, 44}, "Facts 9 and 18, and the README": {9, 18}, "facts 37–39": {37, 38, 39},
            "facts 1 to 3": {1, 2, 3}, "as in fact\n    /// 12)": {12}, "facts 3, 5-6 and 8": {3, 5, 6, 8}, "artifact 5, facts: 6": set(),
        }
        for text, wanted in forms.items():
            self.assertEqual(set().union(*(facts for _, facts, _ in citations(text))), wanted, text)
        plain = "[fact 9](aws-facts.md#fact-8), fact 7"
        self.assertEqual(len(list(broken_links(ROOT / "docs/x.md", plain))), 2)


if __name__ == "__main__":
    unittest.main()
