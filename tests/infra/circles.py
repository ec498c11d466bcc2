"""Crates and circles of modules: `python3 tests/infra/circles.py` prints which crate uses which of this workspace, and
each circle with the uses that close it.

Within a folder, a module stands for all that lies below it. A module uses another one where its code, tests left out,
names it by `use` or by a path; a re-exported name counts for the module that has it. Between a module and its own
children there is no direction: a parent offers what its children have.
"""
import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What is built, which changes while the tests run, is not in the graph.
LISTED = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*/Cargo.toml"]
MANIFESTS = subprocess.run(LISTED, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
CRATES = sorted(folder for folder in ((ROOT / path).parent for path in MANIFESTS) if (folder / "src").is_dir())
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{")
PATH = re.compile(r"(?<![:\w])\w+(?:::\w+)+")


def code(text):
    """A file's text without comments, strings and inline tests."""
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', re.sub(r"//[^\n]*", "", text))
    while found := TESTS.search(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def paths(tree, prefix=()):
    """The paths of a use declaration."""
    tree = tree.strip()
    group = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree, re.S)
    if not group:
        return [prefix + tuple(re.sub(r"\s+as\s+\w+$", "", tree).split("::"))]
    prefix += tuple(part for part in group[1].split("::") if part)
    parts, depth = [""], 0
    for letter in group[2]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [path for part in parts if part.strip() for path in paths(part, prefix)]


def modules(crate):
    """The code of each module, by its path."""
    found = defaultdict(str)
    for file in sorted((crate / "src").rglob("*.rs")):
        name = file.relative_to(crate / "src").with_suffix("").parts
        if "tests" not in name:
            found[name[:-1] if name[-1] in ("lib", "main", "mod") else name] += code(file.read_text())
    return found


def absolute(path, module, known):
    """A path from the crate's root, or None where it is of another crate."""
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("self", "super"):
        while path and path[0] in ("self", "super"):
            module, path = (module[:-1] if path[0] == "super" else module), path[1:]
        return module + path
    return module + path if module + path[:1] in known else None


def uses(crate):
    """Which module uses which."""
    known = modules(crate)
    offered = {}
    for module, text in known.items():
        for tree in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", text):
            for path in paths(tree):
                target = absolute(path, module, known)
                if target and target != module + path[-1:]:
                    offered[module + path[-1:]] = target

    def home(path):
        for length in range(len(path), -1, -1):
            if path[:length] in known:
                return path[:length]
            if path[:length] in offered:
                return home(offered[path[:length]] + path[length:])

    for module, text in known.items():
        named = [path for tree in re.findall(r"\buse ([^;]+);", text) for path in paths(tree)]
        named += [tuple(path.split("::")) for path in PATH.findall(re.sub(r"\buse [^;]+;", "", text))]
        for path in named:
            if target := absolute(path, module, known):
                yield module, home(target)


def circle_of(start, edges):
    """The modules that lie on a way from this one back to it."""
    def reach(graph):
        seen, todo = set(), [start]
        while todo:
            for each in graph[todo.pop()] - seen:
                seen.add(each)
                todo.append(each)
        return seen

    back = defaultdict(set)
    for source, targets in list(edges.items()):
        for target in targets:
            back[target].add(source)
    return reach(edges) & reach(back)


def circles(crate):
    """Each circle: the folder's path, and its modules with the uses among them."""
    levels = defaultdict(lambda: defaultdict(set))
    because = defaultdict(set)
    for source, target in uses(crate):
        common = 0
        while common < min(len(source), len(target)) and source[common] == target[common]:
            common += 1
        if common < min(len(source), len(target)):
            level, ends = source[:common], (source[common], target[common])
            levels[level][ends[0]].add(ends[1])
            because[level, ends].add(f"{'::'.join(source)} uses {'::'.join(target)}")
    for level, edges in sorted(levels.items()):
        left = set(edges)
        while left:
            circle = circle_of(left.pop(), edges)
            if circle:
                left -= circle
                why = {text for (at, ends), texts in because.items() if at == level and set(ends) <= circle for text in texts}
                yield "::".join(level) or "crate", sorted(circle), sorted(why)


def crates():
    """The crates of the workspace, and which of them each one uses; those that only its tests use are left out."""
    manifests = {crate: tomllib.loads((crate / "Cargo.toml").read_text()) for crate in CRATES}
    names = {manifest["package"]["name"] for manifest in manifests.values()}
    for crate, manifest in manifests.items():
        used = sorted(names & set(manifest.get("dependencies", {})))
        yield str(crate.relative_to(ROOT)), manifest["package"]["name"], used


if __name__ == "__main__":
    for folder, name, used in crates():
        print(f"{folder} ({name}): {', '.join(used) or 'none'}")
    for crate in CRATES:
        for level, circle, why in circles(crate):
            print(f"{crate.relative_to(ROOT)}, {level}: {', '.join(circle)}", *why, sep="\n    ")
