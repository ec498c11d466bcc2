"""Hydra: overrides on the command line, logging, and a working folder of its own."""
import logging
import os

import hydra
import torch
from omegaconf import DictConfig
from torch import nn

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(16384, 16)
    targets = (inputs.sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=config.optimizer.lr, momentum=config.optimizer.momentum)
    start = 0
    if os.path.exists(config.checkpoint):
        state = torch.load(config.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
        log.info("resuming at epoch %d", start)
    for epoch in range(start, config.epochs):
        for batch in range(0, 14336, 64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[batch : batch + 64]), targets[batch : batch + 64])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(inputs[14336:]).argmax(1) == targets[14336:]).float().mean()
        log.info(f"epoch {epoch}: loss {loss.item():.4f}, val_accuracy: {accuracy:.4f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, config.checkpoint)


if __name__ == "__main__":
    main()
