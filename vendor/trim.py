#!/usr/bin/env python3
"""Copies crates of the AWS SDK with only the operations that this workspace calls.

    python3 vendor/trim.py [SERVICE ...]

AWS's crates have no feature for each operation, and aws-sdk-ec2 has more than 700 operations: a third of a cold build,
and more memory than many machines have. A copy in `vendor/<service>` keeps AWS's own generated code, file by file: the
operations in `operations.json`, and the types and serializers that these operations reach. `[patch.crates-io]` in
Cargo.toml puts the copies in place of the crates. Without arguments the script copies all services of
`operations.json`.

To update: set the new version in `operations.json`, run `cargo fetch` in any project that depends on that version,
which puts the published source into cargo's registry, run this script, and commit what it writes.
"""

import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Files with one item for each operation, type or shape: their items are kept one by one.
INDEXES = [
    "client.rs", "error_meta.rs", "lens.rs", "lib.rs", "operation.rs", "protocol_serde.rs", "serde_util.rs",
    "types.rs", "types/builders.rs", "types/error.rs", "types/error/builders.rs",
]
FOLDERS = ["client", "operation", "protocol_serde", "types", "waiters"]
REFERENCE = re.compile(r"crate::(types|protocol_serde|lens|serde_util)::((?:builders::|error::)*)(\w+)")


def items(text):
    """The top-level items of a formatted file, each with the comments and attributes before it."""
    item, found = [], []
    for line in text.splitlines():
        item.append(line)
        is_code = line[:1] not in (" ", "/", "#", "")
        if line.startswith("#![") or is_code and line.endswith((";", "}")):
            found.append("\n".join(item).strip("\n"))
            item = []
    found.append("\n".join(item).strip("\n"))
    return [item for item in found if item]


def code(text):
    """Without comments: they mention what the code does not use."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def shortened(text):
    """Of each documentation comment only the first line: the whole is on docs.rs."""
    lines, before = [], ""
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark not in ("///", "//!") or before != mark:
            lines.append(line)
        before = mark
    return "\n".join(lines) + "\n"


class Crate:
    """A published crate, and the part of it that is kept."""

    def __init__(self, source, operations):
        self.source, self.operations = source, operations
        self.files = {str(path.relative_to(source)): path.read_text() for path in sorted(source.rglob("*.rs"))}
        self.indexes = {name: items(self.files[name]) for name in INDEXES if name in self.files}
        self.operation_names = {
            name[: -len(".rs")].removeprefix("operation/")
            for name in self.files if name.startswith("operation/") and name.count("/") == 1
        }
        unknown = set(operations) - self.operation_names
        if unknown:
            raise SystemExit(f"{source}: no such operations: {', '.join(sorted(unknown))}")
        # `types::builders::VolumeBuilder` → `types/_volume.rs`
        self.type_files = {}
        for name, found in self.indexes.items():
            for item in found:
                match = re.search(r"pub use crate::((?:types|protocol_serde)::[\w:]+)::(\w+);", item)
                if match and name.startswith("types"):
                    prefix = name[: -len(".rs")].replace("/", "::")
                    self.type_files[f"{prefix}::{match[2]}"] = match[1].replace("::", "/") + ".rs"
        self.kept_files, self.references = set(), set()

    def keep(self):
        """Follows what is mentioned, from the kept operations and the shared files on."""
        for name in self.files:
            top = name.split("/")[0]
            parts = name.split("/")
            of_operation = parts[1].removesuffix(".rs") if len(parts) > 1 else ""
            if name in INDEXES or top in ("waiters", "waiters.rs", "types", "protocol_serde", "type_registry.rs"):
                continue
            if top in FOLDERS and of_operation in self.operation_names - set(self.operations):
                continue
            self.keep_file(name)
        for name in {"client.rs", "error_meta.rs", "lib.rs", "protocol_serde.rs"} & self.indexes.keys():
            for item in self.indexes[name]:
                if not self.is_module(item) and self.is_kept(name, item):
                    self.follow(item)

    def keep_file(self, name):
        if name not in self.kept_files and name in self.files:
            self.kept_files.add(name)
            self.follow(self.files[name])

    def follow(self, text):
        for kind, path, name in REFERENCE.findall(code(text)):
            reference = f"{kind}::{path}{name}"
            if reference in self.references:
                continue
            self.references.add(reference)
            if kind == "types":
                self.keep_file(self.type_files.get(reference, ""))
            elif kind == "protocol_serde":
                self.keep_file(f"protocol_serde/{name}.rs")
            else:
                for item in self.indexes.get(f"{kind}.rs", []):
                    if re.search(rf"\bfn {name}\b", item):
                        self.follow(item)

    @staticmethod
    def is_module(item):
        return re.search(r"^(?:pub |pub\(crate\) )?mod (\w+);\Z", code(item).strip(), re.MULTILINE)

    def is_kept(self, index, item):
        """Whether an item of an index stays."""
        text = code(item)
        module = self.is_module(item)
        if module:
            folder = "" if index == "lib.rs" else index.removesuffix(".rs") + "/"
            child = f"{folder}{module[1]}.rs"
            return child in self.kept_files or child in self.indexes and bool(self.written(child))
        if index == "client.rs" and re.search(r"\bWaiters\b|crate::type_registry::", text):
            return False
        if index == "error_meta.rs":
            return all(name in self.operations for name in re.findall(r"crate::operation::(\w+)::", text))
        if index in ("lens.rs", "serde_util.rs"):
            name = re.search(r"\bfn (\w+)", text)
            return not name or f"{index.removesuffix('.rs')}::{name[1]}" in self.references
        if index.startswith("types"):
            match = re.search(r"pub use crate::(types::[\w:]+)::(\w+);", text)
            return not match or match[1].replace("::", "/") + ".rs" in self.kept_files
        return True

    def written(self, index):
        return [item for item in self.indexes[index] if self.is_kept(index, item)]

    def write(self, target):
        for name in sorted(self.kept_files):
            path = target / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(shortened(self.files[name]))
        for name in self.indexes:
            text = "\n".join(shortened(item).rstrip("\n") for item in self.written(name)) + "\n"
            if name == "lib.rs":
                text = "#![allow(warnings)]\n" + text
            if self.written(name):
                path = target / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)


def manifest(source, version):
    """The published manifest without tests, examples and what only they need."""
    text = (source / "Cargo.toml").read_text()
    sections = re.split(r"\n(?=\[)", text[text.index("[package]"):])
    unwanted = ("[[test", "[[example", "[dev-dependencies", "[package.metadata", "[hints")
    sections = [section for section in sections if not section.startswith(unwanted)]
    sections[0] = sections[0].replace('readme = "README.md"\n', "").rstrip("\n") + "\npublish = false\n"
    [at] = [at for at, section in enumerate(sections) if section.startswith("[lib]")]
    sections[at] = sections[at].rstrip("\n") + "\ndoctest = false\ntest = false\n"
    head = f"# Generated by vendor/trim.py from the published crate, version {version}. Do not edit.\n\n"
    return head + "\n".join(section.rstrip("\n") + "\n" for section in sections)


def trim(service, wanted, target):
    """Writes the copy of one service's crate."""
    crate, version = f"aws-sdk-{service}", wanted["version"]
    registry = Path.home() / ".cargo/registry/src"
    found = sorted(registry.glob(f"*/{crate}-{version}"))
    if not found:
        raise SystemExit(f"{crate} {version} is not in {registry}: see the head of this script")
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    kept = Crate(found[0] / "src", wanted["operations"])
    kept.keep()
    kept.write(target)
    (target / "Cargo.toml").write_text(manifest(found[0], version))
    shutil.copy(found[0] / "LICENSE", target)


def main():
    services = json.loads((HERE / "operations.json").read_text())
    for service in sys.argv[1:] or services:
        trim(service, services[service], HERE / service)


if __name__ == "__main__":
    main()
