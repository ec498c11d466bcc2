"""Lightning: ModelCheckpoint, and ckpt_path="last"."""
import os
import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def on_train_start(self):
        print(f"START after={self.global_step}", flush=True)

    def training_step(self, batch, _):
        time.sleep(0.1)
        inputs, targets = batch
        return torch.nn.functional.mse_loss(self.layer(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


checkpoints = ModelCheckpoint(
    dirpath=os.environ["SPOTSWEEP_CHECKPOINTS"],
    filename="{step}",
    save_top_k=-1,
    save_last="link" if "--link" in sys.argv else True,
    save_on_exception="--exception" in sys.argv,
)
trainer = lightning.Trainer(
    max_epochs=5, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[checkpoints]
)
data = DataLoader(TensorDataset(torch.randn(160, 8), torch.randn(160, 1)), batch_size=8, num_workers=2)
trainer.fit(Model(), data, ckpt_path="last")
print(f"END at={trainer.global_step}")
