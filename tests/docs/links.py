"""Links of Markdown pages, as GitHub resolves them: files relative to the page, anchors from headings and from `id`s."""
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)
ID = re.compile(r'<a id="([^"]+)"></a>')


def pages():
    """The pages that people read: of docs/, of the repository's root, and the READMEs of its folders."""
    found = {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md"),
             *ROOT.glob("tests/**/README.md"), *ROOT.glob("studies/*/README.md")}
    return sorted(found)


def slug(heading):
    """GitHub's anchor of a heading: its text in lower case, without punctuation, with hyphens for spaces."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


@functools.cache
def anchors(page):
    text = FENCE.sub("", page.read_text())
    found = set(ID.findall(text))
    for heading in HEADING.findall(text):
        name, number = slug(heading), 0
        while name in found:  # a heading of the same text gets a number, as GitHub does it
            number += 1
            name = f"{slug(heading)}-{number}"
        found.add(name)
    return found


def links(page):
    return LINK.findall(CODE.sub("", FENCE.sub("", page.read_text())))


def broken(page):
    """Each link of the page that leads nowhere, with the reason."""
    for link in links(page):
        if re.match(r"(https?|mailto):", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"{page}: {link}: there is no such file"
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
            yield f"{page}: {link}: {file.name} has no such heading"
