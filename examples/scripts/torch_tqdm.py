"""PyTorch with argparse and tqdm: one checkpoint file, rewritten after each epoch."""
import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--checkpoint", default="checkpoints/last.pt")
args = parser.parse_args()

torch.manual_seed(0)
inputs = torch.randn(16384, 16)
targets = (inputs.sum(1) > 0).long()
loader = DataLoader(TensorDataset(inputs[:12288], targets[:12288]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

start = 0
if os.path.exists(args.checkpoint):
    state = torch.load(args.checkpoint)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["epoch"] + 1
    print(f"resumed from epoch {start}")

os.makedirs(os.path.dirname(args.checkpoint), exist_ok=True)
for epoch in range(start, args.epochs):
    with tqdm(loader, desc=f"Epoch {epoch + 1}/{args.epochs}") as progress:
        for batch, labels in progress:
            optimizer.zero_grad()
            output = model(batch)
            loss = criterion(output, labels)
            loss.backward()
            optimizer.step()
            accuracy = (output.argmax(1) == labels).float().mean()
            progress.set_postfix(loss=loss.item(), acc=accuracy.item())
    with torch.no_grad():
        val_acc = (model(inputs[12288:]).argmax(1) == targets[12288:]).float().mean().item()
    print(f"Epoch {epoch + 1}: val_acc: {val_acc:.4f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, args.checkpoint)
