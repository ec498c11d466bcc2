#!/usr/bin/env python3
"""Writes the scripts beside it into ../gpu-ami.yaml; with --check only says whether they are there.

Image Builder takes a component as one text, and CloudFormation cannot read a file into it. The
scripts are the source: edit them, run this, raise the component's and the recipe's Version.
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "gpu-ami.yaml"
# A marker line, the key of a block, and the block, which ends where the next line is indented less.
BLOCK = re.compile(r"(?P<head>^ *# from gpu-ami/(?P<name>[\w.]+)\n(?P<indent> *).*\|\n)(?P<body>(?:(?P=indent)  .*\n|\n)*)", re.M)


def inlined(template):
    """The template's text with every marked block replaced by its script."""

    def block(match):
        indent = match["indent"] + "  "
        script = (HERE / match["name"]).read_text()
        if "{{" in script:
            sys.exit(f"{match['name']} has {{{{, which Image Builder reads as a variable of its own")
        lines = (f"{indent}{line}" if line else "" for line in script.splitlines())
        return match["head"] + "\n".join(lines) + "\n"

    return BLOCK.sub(block, template)


def main():
    text = TEMPLATE.read_text()
    wanted = inlined(text)
    if "--check" in sys.argv:
        if text != wanted:
            sys.exit(f"{TEMPLATE.name} does not have the scripts as they are: run {Path(__file__).name}")
    else:
        TEMPLATE.write_text(wanted)


if __name__ == "__main__":
    main()
