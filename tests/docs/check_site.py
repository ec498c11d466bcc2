"""Checks the built site: `mdbook build docs`, then `python3 tests/docs/check_site.py target/book`.

Each link and picture of a page leads to a file of the site, and each anchor to an element of that page.
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The ids of a page, and what it links to."""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids.add(named.get("id"))
        self.links += [named[name] for name in ("href", "src") if named.get(name)]


def broken(site):
    # mdBook's own pages: print.html repeats all pages under anchors of its own, 404.html has links from the server's root.
    pages = {file: Page(file) for file in site.rglob("*.html") if file.name not in {"print.html", "404.html"}}
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            to = (file.parent / urllib.parse.unquote(target)).resolve() if target else file
            if not to.is_file():
                yield f"{file.relative_to(site)}: {link}: there is no such file in the site"
            elif anchor and to in pages and urllib.parse.unquote(anchor) not in pages[to].ids:
                yield f"{file.relative_to(site)}: {link}: {to.name} has no such anchor"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = len(list(site.rglob("*.html")))
    wrong = list(broken(site))
    print("\n".join(wrong) or f"{pages} pages, every link leads somewhere")
    sys.exit(1 if wrong or not pages else 0)


if __name__ == "__main__":
    main()
