"""Each row of docs/habits.md names a test that exists."""
import re
import unittest

from links import ROOT

ROW = re.compile(r"^\|(?!-)(.+)\|$", re.M)
TEST = re.compile(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:async )?fn (\w+)")


def rows(text):
    """The cells of each row of a table; a bar with a backslash before it is no border."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in ROW.findall(text)]


def tests():
    sources = [*ROOT.glob("runner/**/*.rs"), *ROOT.glob("shared/**/*.rs")]
    return {name for source in sources for name in TEST.findall(source.read_text())}


class Habits(unittest.TestCase):
    def test_each_row_names_tests_that_exist(self):
        found = [row for row in rows((ROOT / "docs/habits.md").read_text()) if row[-1] != "test"]
        self.assertGreater(len(found), 20)
        known = tests()
        for row in found:
            with self.subTest(row=row[0]):
                named = re.findall(r"`(\w+)`", row[-1])
                self.assertTrue(named, "no test is named")
                self.assertEqual([name for name in named if name not in known], [])

    def test_a_row_and_a_test_are_found(self):
        self.assertEqual(rows("| a \\| b | `c` |\n|---|---|\n"), [["a \\| b", "`c`"]])
        self.assertEqual(TEST.findall("#[tokio::test(flavor = \"x\")]\nasync fn a_b() {}\nfn c() {}\n#[test]\nfn d()"), ["a_b", "d"])


if __name__ == "__main__":
    unittest.main()
