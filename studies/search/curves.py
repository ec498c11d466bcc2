"""Makes studies/data/lcbench/curves.json: random parameter sets of the reported tasks, at the rungs and at the end.

python studies/search/curves.py > studies/data/lcbench/curves.json
"""

import json
import zlib

import numpy as np

from tasks import EPOCHS, REPORTED, draw, task

RUNGS = [3, 9, 27]
# The number of trials is enough for 50 windows of 20 trials.
TRIALS = 140


def curves(name):
    of = task(name)
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(TRIALS):
        values, _seconds = of.run(draw(of.space, generator))
        yield [round(float(values[epoch - 1]), 3) for epoch in [*RUNGS, EPOCHS]]


def main():
    tasks = {name: list(curves(name)) for name in REPORTED}
    lines = [f'  {json.dumps(name)}: {json.dumps(of, separators=(",", ":"))}' for name, of in tasks.items()]
    print(f'{{"epochs": {EPOCHS}, "rungs": {json.dumps(RUNGS)}, "tasks": {{\n' + ",\n".join(lines) + "\n}}")


main()
