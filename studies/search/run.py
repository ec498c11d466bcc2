"""Runs the whole benchmark of the search: the environment, the program, the costs of suggestions, and the methods.

usage: python3 studies/search/run.py [--quick]

Everything is below `studies/target`. A run of a method is kept in `search.jsonl` there and is made once, so an
interrupted benchmark continues where it was. `--quick` runs each method once per task. The exit code is 1 if a goal is
missed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "target"
PROGRAM = TARGET / "release" / "suggestions"

# The largest allowed mean regret, by method and number of trials.
REGRETS = {("ours", "100"): 0.073, ("ours", "200"): 0.055, ("ours-64", "200"): 0.090}
# The largest allowed share of the time of 200 random trials until half of the runs of our suggestions with hyperband
# have found random's best.
MOST_TIME = 0.06
# A suggestion of 200 finished and 100 pending trials must take at most two seconds on a function. That is CPU time
# divided by the function's share of 1769 MB, which is one CPU.
MEMORY_MB = 512
MOST_MS = 2000 * MEMORY_MB / 1769
MOST_MIB = 64


def environment():
    """Returns the interpreter of an environment with the peers' packages, which is made again if their list has changed."""
    folder, wanted = TARGET / "search-python", (HERE / "requirements.txt").read_text()
    stamp = folder / "requirements.stamp"
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        stamp.write_text(wanted)
    return folder / "bin/python"


def lines(python, script, *arguments):
    """Returns the JSON lines of a script. It has one thread, because more are slower on matrices of this size."""
    command = [python, HERE / script, *map(str, arguments)]
    settings = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as script:
        yield from map(json.loads, script.stdout)
    if script.returncode:
        sys.exit(f"{command[1]} has failed")


def costs(measured):
    name = "{finished} finished, {pending} pending, {gap} unknown".format(**measured)
    yield f"{name}: own CPU", measured["ms"], "ms", MOST_MS if measured["finished"] <= 200 else None
    yield f"{name}: memory", measured["memory"], "MiB", MOST_MIB


def figures(summary):
    name = summary["method"]
    for count, regret in summary["regret"].items():
        yield f"{name}/after {count}", regret, "regret", REGRETS.get((name, count))
    yield f"{name}/time of 200 random trials", summary["share"], "share", None
    yield f"{name}/runs that find random's best", summary["hits"], "share", None
    if summary["at_hit"] is not None:
        yield f"{name}/time until then", summary["at_hit"], "share", MOST_TIME if name == "ours-hyperband" else None
    yield f"{name}/a suggestion", 1e3 * summary["ask"], "ms", None


def show(rows):
    """Prints each row with its goal, and returns whether a goal is missed."""
    missed = False
    for name, value, unit, most in rows:
        is_over = most is not None and value > most
        goal = "" if most is None else f"at most {most:.3g}: {'MISSED' if is_over else 'met'}"
        print(f"{name:<52} {value:>10.3f}  {unit:<7} {goal}".rstrip(), flush=True)
        missed |= is_over
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one run of each method and task")
    arguments = parser.parse_args()
    build = ["cargo", "build", "--release", "--locked", "--target-dir", TARGET, "--bin", "suggestions"]
    subprocess.run(build, check=True, cwd=HERE.parent)
    python = environment()
    missed = [show(costs(measured)) for measured in lines(python, "cost.py", PROGRAM)]
    seeds = 1 if arguments.quick else 10
    methods = lines(python, "main.py", "--seeds", seeds, "--program", PROGRAM, "--results", TARGET / "search.jsonl")
    missed += [show(figures(summary)) for summary in methods]
    sys.exit(any(missed))


if __name__ == "__main__":
    main()
