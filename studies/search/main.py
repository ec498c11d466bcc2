"""Runs searches on recorded tasks and prints what they reach, one line of JSON for each method.

usage: main.py --program SUGGESTIONS [--seeds N] [--only METHOD,…] [--results FILE] [--development]

The file of results keeps every run. A run in it is not repeated while the program is the same.
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import time

import methods
import simulate
import tasks

COUNTS = (20, 50, 100, 200)


def one(method, name, seed, program):
    """Runs one sweep, and returns its results with their times."""
    task = tasks.task(name)
    searcher = method.searcher(task, seed, program)
    stopper = method.stopper(task, seed, program) if method.stopper else None
    interruptions = method.interruptions(task, seed, stopper) if method.interruptions else None
    asked = Timed(searcher)
    result = simulate.simulate(task, asked, stopper, method.workers, method.run_cap, interruptions)
    for each in (searcher, stopper):
        if hasattr(each, "close"):
            each.close()
    return {
        "method": method.name, "task": name, "seed": seed,
        "regret": {str(count): result.regret(count) for count in COUNTS if count <= method.run_cap},
        "share": result.share(), "hit": result.share_at_hit(),
        "ask": asked.seconds / method.run_cap,
        "program": digest(method, program),
    }


def digest(method, program):
    """Returns the program that a run has used, or None."""
    if not method.uses_program():
        return None
    return hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:16]


class Timed:
    """A searcher, with the seconds that its suggestions took."""

    def __init__(self, searcher):
        self.searcher, self.seconds = searcher, 0.0

    def ask(self, index):
        begun = time.perf_counter()
        chosen = self.searcher.ask(index)
        self.seconds += time.perf_counter() - begun
        return chosen

    def __getattr__(self, name):
        return getattr(self.searcher, name)


def summary(method, runs):
    """Returns means over the runs. In the median, a run without a hit counts as later than all others."""
    hits = [run["hit"] for run in runs]
    median = statistics.median(float("inf") if hit is None else hit for hit in hits)
    means = {count: statistics.fmean(run["regret"][count] for run in runs) for count in runs[0]["regret"]}
    last = [list(run["regret"].values())[-1] for run in runs]
    return {
        "method": method.name, "family": method.family, "workers": method.workers, "runs": len(runs),
        "regret": means,
        "error": statistics.stdev(last) / len(last) ** 0.5 if len(last) > 1 else None,
        "share": statistics.fmean(run["share"] for run in runs),
        "hits": sum(hit is not None for hit in hits) / len(hits),
        "at_hit": median if median < float("inf") else None,
        "ask": statistics.fmean(run["ask"] for run in runs),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--seeds", type=int, default=10, help="at most so many runs of a task")
    parser.add_argument("--only", default="", help="methods, separated by commas")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--development", action="store_true", help="the tasks for tuning")
    arguments = parser.parse_args()
    known = {}
    if arguments.results and arguments.results.exists():
        for line in arguments.results.read_text().splitlines():
            run = json.loads(line)
            known[run["method"], run["task"], run["seed"], run["program"]] = run
    only = [name for name in arguments.only.split(",") if name]
    for method in methods.METHODS:
        if only and method.name not in only:
            continue
        runs, program = [], digest(method, arguments.program)
        for seed in range(min(arguments.seeds, method.seeds)):
            for name in method.tasks(arguments.development):
                run = known.get((method.name, name, seed, program))
                if run is None:
                    run = one(method, name, seed, arguments.program)
                    if arguments.results:
                        with arguments.results.open("a") as file:
                            file.write(json.dumps(run) + "\n")
                runs.append(run)
        print(json.dumps(summary(method, runs)), flush=True)


if __name__ == "__main__":
    main()
