"""Keras: BackupAndRestore, or ModelCheckpoint with whole models or with weights."""
import os
import sys
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy

way, folder = sys.argv[1], Path(os.environ["SPOTSWEEP_CHECKPOINTS"])
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
start = 0
if way == "backup":
    saves = keras.callbacks.BackupAndRestore(folder / "backup")
else:
    ending = {"model": ".keras", "weights": ".weights.h5"}[way]
    saves = keras.callbacks.ModelCheckpoint(folder / f"cp-{{epoch:04d}}{ending}", save_weights_only=way == "weights")
    found = sorted(folder.glob(f"cp-*{ending}"))
    if found:
        start = int(found[-1].name[3:7])
        if way == "model":
            model = keras.models.load_model(found[-1])
        else:
            model.load_weights(found[-1])


class Progress(keras.callbacks.Callback):
    started = False

    def on_epoch_begin(self, epoch, logs=None):
        if not self.started:
            print(f"START after={epoch}", flush=True)
        self.started = True
        time.sleep(2)

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch={epoch + 1} score={epoch + 1}", flush=True)


inputs, targets = numpy.random.rand(64, 8), numpy.random.rand(64, 1)
model.fit(inputs, targets, epochs=6, initial_epoch=start, verbose=0, callbacks=[saves, Progress()])
print("END at=6")
