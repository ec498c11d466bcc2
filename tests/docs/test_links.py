"""Each link of a page leads to a file, and to a heading that is there; each page of docs/ is in the site's contents."""
import pathlib
import re
import subprocess
import tempfile
import unittest

from links import ROOT, anchors, broken, pages, slug

# A page that code or a template names, and a section of it: docs/page.md, "Section".
CITED = re.compile(r'(docs/[\w/-]+\.md)\b(?:, \\?"([^"\\]+))?')


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in pages():
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(list(broken(page)), [])

    def test_cited_pages_and_sections_exist(self):
        named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for file in (ROOT / name for name in named.split("\0") if name):
            if file.is_file() and file.suffix in {".rs", ".yaml", ".toml", ".txt", ".sh"}:
                for page, section in CITED.findall(file.read_text(errors="replace")):
                    cites = f"{file.relative_to(ROOT)} cites {page} {section}"
                    self.assertTrue((ROOT / page).exists(), cites)
                    if section:
                        self.assertIn(slug(section), anchors(ROOT / page), cites)

    def test_the_site_has_every_page(self):
        contents = (ROOT / "docs/SUMMARY.md").read_text()
        for page in ROOT.glob("docs/**/*.md"):
            path = str(page.relative_to(ROOT / "docs"))
            if path != "SUMMARY.md":
                self.assertIn(f"]({path})", contents, "docs/SUMMARY.md does not list it")

    def test_a_broken_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text("# A page\n[a](#a-page) [b](#b) [c](none.md) `[d](#d)` [e](page.md#a-page)\n"
                            "```sh\n# no heading\n```\n[f](#no-heading)\n")
            self.assertEqual([line.split(": ")[1] for line in broken(page)], ["#b", "none.md", "#no-heading"])

    def test_slugs_are_githubs(self):
        self.assertEqual(slug("What you need"), "what-you-need")
        self.assertEqual(slug("3. The acceptance run"), "3-the-acceptance-run")
        self.assertEqual(slug("With `workspace: off`"), "with-workspace-off")
        self.assertEqual(slug("Keys of your own (KMS)"), "keys-of-your-own-kms")
        self.assertEqual(slug("The instance's role"), "the-instances-role")


if __name__ == "__main__":
    unittest.main()
