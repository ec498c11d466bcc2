"""The data: 1 797 handwritten digits of 8 x 8 pixels (README.md has the source)."""
from pathlib import Path

import numpy as np

PIXELS, CLASSES = 64, 10


def load(seed):
    """Training and validation images and labels, one fifth held out."""
    rows = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",", dtype=np.int64)
    images = rows[:, :PIXELS] / 16.0  # pixels count from 0 to 16
    labels = rows[:, PIXELS]
    order = np.random.default_rng(seed).permutation(len(images))
    held_out = len(images) // 5
    train, held = order[held_out:], order[:held_out]
    return images[train], labels[train], images[held], labels[held]
