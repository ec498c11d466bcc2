"""Weights & Biases: the quick start of its sweeps, with a run that goes on where it was interrupted."""
import os

import torch
import wandb
from torch import nn

with wandb.init(project="my-first-sweep", config={"lr": 0.01, "epochs": int(os.environ.get("EPOCHS", "10"))}) as run:
    torch.manual_seed(0)
    inputs = torch.randn(16384, 16)
    targets = (inputs.sum(1) > 0).float()
    model = nn.Linear(16, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=run.config.lr)
    path = os.path.join(os.environ.get("CHECKPOINTS", "checkpoints"), "model.pt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    start = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, run.config.epochs):
        for batch in range(0, 16384, 64):
            optimizer.zero_grad()
            logits = model(inputs[batch : batch + 64]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets[batch : batch + 64])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = ((model(inputs).squeeze(1) > 0) == (targets > 0)).float().mean().item()
        run.log({"epoch": epoch, "loss": loss.item(), "val/accuracy": accuracy})
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)
    run.summary["best_accuracy"] = accuracy
