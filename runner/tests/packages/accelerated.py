"""Accelerate: a folder per epoch with save_state; starts from the newest one."""
import os
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

folder = Path(os.environ["SPOTSWEEP_CHECKPOINTS"])
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
data = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8, num_workers=2)
model, optimizer, data, scheduler = accelerator.prepare(model, optimizer, data, scheduler)

start = 0
found = sorted(folder.glob("epoch_*"), key=os.path.getctime)
if found:
    accelerator.load_state(found[-1])
    start = int(found[-1].name.removeprefix("epoch_")) + 1
print(f"START after={start - 1}", flush=True)
for epoch in range(start, 6):
    for inputs, targets in data:
        time.sleep(0.25)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
    scheduler.step()
    accelerator.save_state(folder / f"epoch_{epoch}")
print(f"END at={epoch}")
