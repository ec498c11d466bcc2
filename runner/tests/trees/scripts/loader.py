"""A PyTorch training with a data loader; saves at the next batch after SIGTERM. A loader worker that a signal ends is an
error of this process (torch/utils/data/_utils/signal_handling.py)."""
import os, signal, sys, time

import torch
from torch.utils.data import DataLoader, Dataset

path = os.path.join(os.environ["SPOTSWEEP_CHECKPOINTS"], "model.pt")
stop = False


def on_signal(*_):
    global stop
    stop = True


class Slow(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.tensor([float(index)])


if __name__ == "__main__":
    step = torch.load(path)["step"] if os.path.exists(path) else -1
    print(f"START after_step={step}", flush=True)
    signal.signal(signal.SIGTERM, on_signal)
    while step < 59:
        for batch in DataLoader(Slow(), batch_size=2, num_workers=2):
            step += 1
            print(f"step={step} score={step}", flush=True)
            if stop:
                torch.save({"step": step, "w": batch}, path + ".tmp")
                os.rename(path + ".tmp", path)
                print("saved step", step, flush=True)
                sys.exit(143)
            if step >= 59:
                break
