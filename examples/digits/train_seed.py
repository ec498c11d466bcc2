"""The home-made way: an array job whose index picks a parameter set from a list in S3.

Written as such scripts are, with AWS's own variables and no knowledge of sweeps or checkpoints.
Runs unchanged: the dropped list is the list it downloads, and /storage is collected.
"""
import os

os.environ["OMP_NUM_THREADS"] = "1"  # many trials share a machine

import boto3
import yaml

import digits
from network import Network

BUCKET_NAME = os.environ["SPOTSWEEP_BUCKET"]
KEY = os.environ["SPOTSWEEP_KEY"]
STORAGE = os.environ.get("SPOTSWEEP_STORAGE", "/storage")


def build_model(paramset):
    return Network(
        digits.PIXELS,
        paramset["hidden"],
        digits.CLASSES,
        lr=paramset["lr"],
        alpha=paramset["alpha"],
        seed=paramset["seed"],
    )


def train(model, paramset, model_path):
    images, labels, held_images, held_labels = digits.load(paramset["seed"])
    size = paramset["batch_size"]
    epochs = paramset["epochs"]
    for epoch in range(1, epochs + 1):
        for start in range(0, len(images), size):
            model.train(images[start : start + size], labels[start : start + size])
        accuracy, loss = model.evaluate(held_images, held_labels)
        print(f"Epoch {epoch}/{epochs} - val_accuracy={accuracy:.4f} - val_loss={loss:.4f}", flush=True)
    model.save(model_path)


if __name__ == "__main__":
    s3 = boto3.resource("s3")
    # Named after the process: started by hand, many may share one folder; in a container none does.
    local = f"/tmp/hyperparam_list.{os.getpid()}.yml"
    s3.Bucket(BUCKET_NAME).download_file(KEY, local)
    index = int(os.environ["AWS_BATCH_JOB_ARRAY_INDEX"])
    with open(local) as f:
        hyperparam_list = yaml.safe_load(f)
    os.remove(local)
    paramset = hyperparam_list[index]
    print(paramset, flush=True)
    model = build_model(paramset)
    model_path = os.path.join(STORAGE, "%s/model/" % index)
    os.makedirs(model_path, exist_ok=True)
    train(model, paramset, os.path.join(model_path, "model.npz"))
