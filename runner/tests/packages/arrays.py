"""h5py: a file to which a group is added per epoch, or a new file per epoch."""
import os
import sys
import time
from pathlib import Path

import h5py
import numpy

way, folder = sys.argv[1], Path(os.environ["SPOTSWEEP_CHECKPOINTS"])
if way == "one-file":
    with h5py.File(folder / "train.h5", "a") as file:
        epochs = [int(name.removeprefix("epoch_")) for name in file]
else:
    epochs = [int(path.stem.removeprefix("epoch_")) for path in folder.glob("epoch_*.h5")]
    if epochs:
        h5py.File(folder / f"epoch_{max(epochs)}.h5")["weights"][:]
start = max(epochs, default=0)
print(f"START after={start}", flush=True)
for epoch in range(start + 1, 7):
    time.sleep(2)
    name = "train.h5" if way == "one-file" else f"epoch_{epoch}.h5"
    with h5py.File(folder / name, "a") as file:
        group = file.create_group(f"epoch_{epoch}") if way == "one-file" else file
        group["weights"] = numpy.random.rand(100, 1000)
    print(f"epoch={epoch} score={epoch}", flush=True)
print("END at=6")
