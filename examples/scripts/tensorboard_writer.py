"""PyTorch's SummaryWriter: nothing is printed, metrics are in TensorBoard's event files."""
import argparse
import os

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--save-dir", default="runs/checkpoints")
parser.add_argument("--log-dir", default="runs")
args = parser.parse_args()

torch.manual_seed(0)
writer = SummaryWriter(args.log_dir)
inputs = torch.randn(2048, 16)
targets = (inputs.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
os.makedirs(args.save_dir, exist_ok=True)
saved = sorted(name for name in os.listdir(args.save_dir) if name.startswith("epoch_"))
start = 0
if saved:
    state = torch.load(os.path.join(args.save_dir, saved[-1]))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["epoch"] + 1
for epoch in range(start, args.epochs):
    for batch in range(0, 1536, 64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[batch : batch + 64]), targets[batch : batch + 64])
        loss.backward()
        optimizer.step()
        writer.add_scalar("Loss/train", loss, epoch * 24 + batch // 64)
    with torch.no_grad():
        accuracy = (model(inputs[1536:]).argmax(1) == targets[1536:]).float().mean()
    writer.add_scalar("Accuracy/val", accuracy, epoch)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, os.path.join(args.save_dir, f"epoch_{epoch:03}.pt"))
writer.close()
