"""The home-made way: an array job whose index picks a parameter set from a list in S3.

Written as such scripts are, with AWS's own variables and no knowledge of sweeps or checkpoints.
Runs unchanged: the dropped list is the list it downloads, and /storage is collected.
"""
import os

os.environ["OMP_NUM_THREADS"] = "1"  # many trials share a machine

import boto3
import joblib
import numpy as np
import yaml
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

BUCKET_NAME = os.environ["SPOTSWEEP_BUCKET"]
KEY = os.environ["SPOTSWEEP_KEY"]
STORAGE = os.environ.get("SPOTSWEEP_STORAGE", "/storage")


def build_model(paramset):
    return MLPClassifier(
        hidden_layer_sizes=(paramset["hidden"],),
        learning_rate_init=paramset["lr"],
        alpha=paramset["alpha"],
        batch_size=paramset["batch_size"],
        random_state=paramset["seed"],
    )


def train(model, paramset, model_path):
    images, labels = load_digits(return_X_y=True)
    x_train, x_val, y_train, y_val = train_test_split(
        images / 16.0, labels, test_size=0.2, random_state=paramset["seed"]
    )
    epochs = paramset["epochs"]
    for epoch in range(1, epochs + 1):
        model.partial_fit(x_train, y_train, classes=np.arange(10))
        accuracy = model.score(x_val, y_val)
        loss = log_loss(y_val, model.predict_proba(x_val))
        print(f"Epoch {epoch}/{epochs} - val_accuracy={accuracy:.4f} - val_loss={loss:.4f}", flush=True)
    joblib.dump(model, model_path)


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
    train(model, paramset, os.path.join(model_path, "model.joblib"))
