"""Two epochs in each attempt; MLflow as on its own pages."""
import os
import pathlib
import sys

import mlflow

state = pathlib.Path(os.environ["SPOTSWEEP_CHECKPOINTS"], "epoch.txt")
epoch = int(state.read_text()) if state.exists() else 0

mlflow.set_experiment("digits")
with mlflow.start_run():
    mlflow.log_param("lr", 0.1)
    if "--differs" in sys.argv:
        mlflow.log_param("first_epoch", epoch)
    for epoch in range(epoch + 1, epoch + 3):
        mlflow.log_metric("accuracy", epoch / 10, step=epoch)
        state.write_text(str(epoch))
sys.exit(9 if epoch == 2 else 0)
