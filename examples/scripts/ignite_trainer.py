"""PyTorch-Ignite: its Checkpoint handler, and progress bar."""
import argparse
from pathlib import Path

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, ProgressBar, global_step_from_engine
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--output", default="checkpoints")
args = parser.parse_args()

torch.manual_seed(0)
inputs = torch.randn(4096, 16)
targets = (inputs.sum(1) > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:3072], targets[:3072]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(inputs[3072:], targets[3072:]), batch_size=256)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "nll": Loss(criterion)})
progress = ProgressBar()
progress.attach(trainer, output_transform=lambda loss: {"batch loss": loss})


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    metrics = evaluator.run(val_loader).metrics
    progress.log_message(
        f"Validation Results - Epoch: {engine.state.epoch} Avg accuracy: {metrics['accuracy']:.2f} "
        f"Avg loss: {metrics['nll']:.2f}"
    )


to_save = {"model": model, "optimizer": optimizer, "trainer": trainer}
folder = Path(args.output)
saver = Checkpoint(
    to_save,
    DiskSaver(folder, create_dir=True, require_empty=False),
    n_saved=2,
    global_step_transform=global_step_from_engine(trainer),
)
trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
saved = sorted(folder.glob("checkpoint_*.pt"), key=lambda path: path.stat().st_mtime)
if saved:
    Checkpoint.load_objects(to_save, torch.load(saved[-1]))
trainer.run(train_loader, max_epochs=args.epochs)
