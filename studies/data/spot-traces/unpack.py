"""Writes the windows of windows.txt as the folder that `replay --traces` and `demo --trace` read.

python3 studies/data/spot-traces/unpack.py FOLDER
"""
import json
import sys
from pathlib import Path


def available(runs):
    """Returns '11100' for '1 3 2'."""
    value, *lengths = map(int, runs)
    return "".join(str((value + place) % 2) * length for place, length in enumerate(lengths))


def prices(first, *changes):
    return [[0, float(first)], *([int(look), float(price)] for look, price in zip(changes[::2], changes[1::2]))]


def main(folder):
    lines = (Path(__file__).parent / "windows.txt").read_text().splitlines()
    for line in lines:
        name, *rest = line.split()
        if name == "#":
            continue
        if name.startswith("window-"):
            window, started = folder / name, rest[0]
            window.mkdir(parents=True, exist_ok=True)
            continue
        bar = rest.index("|")
        text = json.dumps({
            "zone": name, "instance_type": "p3.2xlarge", "gap_seconds": 195, "start_time": started,
            "available": available(rest[:bar]), "spot_price": prices(*rest[bar + 1:]),
        })
        (window / f"{name}.json").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
