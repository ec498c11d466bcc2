"""Lightning: the default logger and progress bar, ModelCheckpoint with save_last, and ckpt_path="last"."""
import argparse
import os

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def training_step(self, batch, _):
        inputs, targets = batch
        loss = nn.functional.cross_entropy(self.model(inputs), targets)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        inputs, targets = batch
        output = self.model(inputs)
        self.log("val_loss", nn.functional.cross_entropy(output, targets), prog_bar=True)
        self.log("val_acc", (output.argmax(1) == targets).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--max_epochs", type=int, default=10)
parser.add_argument("--default_root_dir", default=os.getcwd())
args = parser.parse_args()

L.seed_everything(0)
inputs = torch.randn(4096, 16)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
train, val = torch.utils.data.random_split(data, [3072, 1024])
trainer = L.Trainer(
    max_epochs=args.max_epochs,
    accelerator="cpu",
    logger=CSVLogger(args.default_root_dir, name="logs"),
    callbacks=[ModelCheckpoint(dirpath=args.default_root_dir, save_last=True)],
)
trainer.fit(
    Classifier(args.lr), DataLoader(train, batch_size=64, shuffle=True), DataLoader(val, batch_size=64), ckpt_path="last"
)
