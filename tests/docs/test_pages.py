"""What makes the site and the README's recording: links that move with their pages, and a terminal's screen."""
import importlib.util
import sys
import unittest

from links import ROOT


def load(path):
    """A script of docs/ as a module; `site` is also a name of the standard library."""
    spec = importlib.util.spec_from_file_location(path.stem + "_script", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.dont_write_bytecode = True  # mdBook copies every file of docs/ into the site
sys.path.append(str(ROOT / "docs/images"))
record, site = load(ROOT / "docs/images/record.py"), load(ROOT / "docs/site.py")


class Site(unittest.TestCase):
    def test_links_move_with_their_pages(self):
        cases = [
            ("README.md", "[a](docs/cli.md#after) ![b](docs/images/x.svg)", "[a](cli.md#after) ![b](images/x.svg)"),
            ("docs/cli.md", "[a](../README.md) [b](#after)", "[a](index.md) [b](#after)"),
            ("docs/decisions/README.md", "[a](../performance.md)", "[a](../performance.md)"),
            ("examples/digits/README.md", "[a](../../docs/deploy.md)", "[a](../../deploy.md)"),
            ("README.md", "[a](https://example.org/docs/x.md)", "[a](https://example.org/docs/x.md)"),
            ("README.md", "```\n[a](docs/cli.md)\n```\n", "```\n[a](docs/cli.md)\n```\n"),
        ]
        for page, text, moved in cases:
            with self.subTest(page=page, text=text):
                self.assertEqual(site.moved(page, text), moved)


class Recording(unittest.TestCase):
    def test_a_screen_wraps_scrolls_and_erases(self):
        screen = record.Screen(4, 3)
        screen.feed("abcdef\r\ngh\r\nij")
        self.assertEqual(screen.text(), ["ef", "gh", "ij"])
        screen.feed("\x1b[1A\r\x1b[2Kxy\x1b[1B\rz\x1b[K")
        self.assertEqual(screen.text(), ["ef", "xy", "z"])

    def test_a_long_output_is_shown_page_by_page(self):
        lines = "".join(f"line {number}\r\n" for number in range(2 * record.ROWS))
        shown = record.frames([(1, "start\r\n"), (80, lines)], [("line", "row")])
        self.assertEqual(shown[0][0][1], "start")
        self.assertEqual(sum(seconds >= record.READ_SECONDS for _, seconds in shown[1:]), 3)
        self.assertIn(f"row {2 * record.ROWS - 1}", shown[-1][0])

    def test_a_frame_names_each_of_its_rows(self):
        picture = record.svg([(["$ a <b>", ""], 1), (["$ a <b>", "done"], 2)])
        self.assertEqual(picture.count("$ a &lt;b&gt;"), 1)
        self.assertEqual(picture.count('href="#r0"'), 2)
        self.assertIn("33.33%{transform:translateX(-", picture)


if __name__ == "__main__":
    unittest.main()
