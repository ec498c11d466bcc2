"""Measures suggestions: CPU time and memory of a process that makes some, one line of JSON for each size.

usage: cost.py [--quick] SUGGESTIONS

It needs no packages. `--quick` measures the first size only, without repeats.
"""

import argparse
import json
import os
import pathlib
import random

from program import Program

# The numbers of finished trials, of pending ones, and of unknown ones before the next trial.
SIZES = ((20, 16, 0), (100, 16, 0), (200, 16, 0), (200, 100, 0), (200, 100, 3), (1000, 100, 3))
REPEATS = 10

# Eight parameters of all kinds.
STEPS = [{"Steps": {"positions": [at / (count - 1) for at in range(count)]}} for count in (100, 5)]
SPACE = {"dimensions": ["Real"] * 5 + STEPS + [{"Choices": {"count": 4}}], "conditions": []}


def point(generator):
    return [generator.random() for _ in range(5)] + [generator.randrange(count) for count in (100, 5, 4)]


def cost(point):
    return sum((place - 0.3) ** 2 for place in point[:5]) + abs(point[5] / 99 - 0.7) / 10 + 0.2 * (point[7] != 2)


def seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def most_memory(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("program")
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else REPEATS
    generator = random.Random(1)
    for finished, pending, gap in SIZES[:1] if arguments.quick else SIZES:
        program = Program(arguments.program)
        program.say("begin", space=SPACE)
        for _ in range(repeats):
            points = [point(generator) for _ in range(finished + pending)]
            trials = [{"index": index, "point": point} for index, point in enumerate(points)]
            for trial in trials[:finished]:
                trial["end"] = {"Finished": cost(trial["point"])}
            program.ask("suggest", trials=trials, seed=1, index=finished + pending + gap)
        used, memory = seconds(program.process.pid), most_memory(program.process.pid)
        program.close()
        print(json.dumps({
            "finished": finished, "pending": pending, "gap": gap, "ms": 1e3 * used / repeats, "memory": memory,
        }))


if __name__ == "__main__":
    main()
