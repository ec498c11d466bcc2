"""Preprocessor of mdBook: pages from outside docs/ become part of the site, and links lead to where pages are there.

A page of docs/ keeps its path below docs/; a page of another folder keeps its path in the repository. The README is the
first page. Run by `mdbook build docs`.
"""
import json
import pathlib
import posixpath
import re
import sys

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
# "10 000" and "5 %": one word, so that a narrow column does not break it.
GROUPED = re.compile(r"(?<=\d) (?=\d{3}\b|%)")


def in_repository(page, target):
    """The path in the repository of what a page of that path links to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def in_site(path):
    """The path in the site of a file of the repository."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def moved(page, text):
    """The text of a page for the site: its links lead from paths in the repository to paths in the site."""
    def link(match):
        target, hash, anchor = match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        to = in_site(in_repository(page, target))
        return match[1] + posixpath.relpath(to, posixpath.dirname(in_site(page)) or ".") + hash + anchor + match[3]

    fences = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else GROUPED.sub("\u00a0", LINK.sub(link, part)) for part in fences)


def place(items):
    for chapter in (item["Chapter"] for item in items if isinstance(item, dict) and "Chapter" in item):
        page = in_repository("docs/SUMMARY.md", chapter["source_path"])
        chapter["content"] = moved(page, chapter["content"])
        chapter["path"] = in_site(page)
        place(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    place(book["items"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
