"""Keras: fit with its progress bar, and BackupAndRestore."""
import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, default=1e-3)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--backup_dir", default="backup")
args = parser.parse_args()

keras.utils.set_random_seed(0)
inputs = np.random.randn(2048, 16)
targets = (inputs.sum(1) > 0).astype(int)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(2, "softmax")])
model.compile(
    optimizer=keras.optimizers.Adam(args.learning_rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
)
model.fit(
    inputs,
    targets,
    batch_size=64,
    epochs=args.epochs,
    validation_split=0.2,
    callbacks=[keras.callbacks.BackupAndRestore(args.backup_dir)],
)
model.save("model.keras")
