"""Train ResNet50 on CIFAR-10 with PyTorch, on one GPU, and survive interruptions.

The state of the training is one dictionary: weights, optimizer, scaler, how far it has got. The order of
images and their augmentation follow from the seed, the epoch and the batch, so that a resumed
training goes on with the very batch that an undisturbed one would have had next.
"""
import argparse
import contextlib
import hashlib
import json
import math
import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import resnet50

import checkpoints
import data

CLASSES = 10
INTERRUPTED = 128 + signal.SIGTERM
EVALUATION_BATCH = 1000

stop_requested = False


def on_sigterm(_signal, _frame):
    global stop_requested
    stop_requested = True


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1, help="highest learning rate; it falls to zero along a cosine")
    parser.add_argument("--momentum", type=float, default=0.9, help="of SGD")
    parser.add_argument("--weight_decay", "--weight-decay", type=float, default=5e-4, help="of SGD")
    parser.add_argument("--batch_size", "--batch-size", type=int, default=128, help="images per step")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training images")
    parser.add_argument("--warmup_epochs", "--warmup-epochs", type=float, default=1, help="epochs of rising learning rate")
    parser.add_argument("--seed", type=int, default=7, help="of weights, order and augmentation")
    parser.add_argument("--stem", choices=["cifar", "imagenet"], default="cifar", help="first layers; cifar is right for 32 pixels")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu is for a look at the program only")
    parser.add_argument("--synthetic", type=int, default=0, help="train on so many random images instead of CIFAR-10")
    arguments = parser.parse_args()
    for name in ("lr", "batch_size", "epochs"):
        if getattr(arguments, name) <= 0:
            parser.error(f"--{name} must be above zero")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        # Training on in silence on the CPU would be paid as a GPU, and take days.
        sys.exit("no GPU is visible in this container: does the job definition ask for a GPU, and does nvidia-smi see one?")
    return arguments


def checkpoint_folder(arguments):
    """One per set of arguments: a checkpoint of other ones must not be gone on with."""
    digest = hashlib.sha256(json.dumps(vars(arguments), sort_keys=True).encode()).hexdigest()
    return Path(os.environ.get("SPOTSWEEP_CHECKPOINTS", "/dltraining/checkpoints"), digest[:16])


def build_model(arguments):
    torch.manual_seed(arguments.seed)
    model = resnet50(weights=None, num_classes=CLASSES)
    if arguments.stem == "cifar":
        # ImageNet's stem leaves 8 x 8 of 32 x 32 pixels, before the first block.
        model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
        model.maxpool = nn.Identity()
    return model.to(arguments.device, memory_format=torch.channels_last)


def learning_rate(arguments, step, steps_per_epoch):
    warmup, steps = arguments.warmup_epochs * steps_per_epoch, arguments.epochs * steps_per_epoch
    if step < warmup:
        return arguments.lr * (step + 1) / warmup
    return arguments.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


class Training:
    """Everything that changes while training."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.model = build_model(arguments)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), arguments.lr, momentum=arguments.momentum,
            weight_decay=arguments.weight_decay, nesterov=arguments.momentum > 0,
        )
        self.scaler = torch.amp.GradScaler(arguments.device, enabled=arguments.device == "cuda")
        self.epoch = 0
        self.batch = 0
        self.loss_sum = 0.0
        self.metrics = None

    def state(self):
        return {
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict(),
            "epoch": self.epoch, "batch": self.batch, "loss_sum": self.loss_sum, "metrics": self.metrics,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.epoch, self.batch = state["epoch"], state["batch"]
        self.loss_sum, self.metrics = state["loss_sum"], state["metrics"]

    def precision(self):
        on_gpu = self.arguments.device == "cuda"
        return torch.autocast("cuda", dtype=torch.float16) if on_gpu else contextlib.nullcontext()

    def train_epoch(self, images, labels):
        """Goes on to the end of the epoch; false where a stop was asked for before it."""
        arguments = self.arguments
        batches = len(images) // arguments.batch_size
        order = data.order(len(images), arguments.seed, self.epoch)
        self.model.train()
        while self.batch < batches and not stop_requested:
            chosen = order[self.batch * arguments.batch_size:(self.batch + 1) * arguments.batch_size]
            inputs = data.augmented(images[chosen], arguments.seed, self.epoch, self.batch).to(arguments.device)
            targets = labels[chosen].to(arguments.device)
            rate = learning_rate(arguments, self.epoch * batches + self.batch, batches)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad(set_to_none=True)
            with self.precision():
                outputs = self.model(inputs.contiguous(memory_format=torch.channels_last))
                loss = functional.cross_entropy(outputs, targets, label_smoothing=0.1)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.loss_sum += loss.item()
            self.batch += 1
        return self.batch == batches

    @torch.no_grad()
    def evaluate(self, images, labels):
        self.model.eval()
        loss, right = 0.0, 0
        for start in range(0, len(images), EVALUATION_BATCH):
            inputs = data.normalised(images[start:start + EVALUATION_BATCH]).to(self.arguments.device)
            targets = labels[start:start + EVALUATION_BATCH].to(self.arguments.device)
            with self.precision():
                outputs = self.model(inputs.contiguous(memory_format=torch.channels_last)).float()
            loss += functional.cross_entropy(outputs, targets, reduction="sum").item()
            right += (outputs.argmax(dim=1) == targets).sum().item()
        return loss / len(images), right / len(images)


def save_model(model):
    storage = Path(os.environ.get("SPOTSWEEP_STORAGE", "/storage"))
    folder = storage / os.environ.get("AWS_BATCH_JOB_ARRAY_INDEX", "0") / "model"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    print(f"saved {folder / 'model.pt'}")


def main():
    signal.signal(signal.SIGTERM, on_sigterm)
    arguments = parse_arguments()
    folder = checkpoint_folder(arguments)
    images, labels, held_images, held_labels = data.load(arguments.synthetic, arguments.seed)
    if arguments.batch_size > len(images):
        sys.exit(f"--batch_size is {arguments.batch_size}, but there are only {len(images)} training images")
    training = Training(arguments)
    state = checkpoints.newest(folder, arguments.device)
    if state:
        training.load(state)
        print(f"resuming after {training.epoch} epochs and {training.batch} batches: {training.metrics}", flush=True)

    while training.epoch < arguments.epochs:
        began, first = time.monotonic(), training.batch
        if not training.train_epoch(images, labels):
            checkpoints.save(folder, training.epoch, training.state())
            print(f"interrupted, {training.batch} batches into the epoch; progress is saved", flush=True)
            sys.exit(INTERRUPTED)
        rate = (training.batch - first) * arguments.batch_size / (time.monotonic() - began)
        train_loss = training.loss_sum / training.batch
        val_loss, val_accuracy = training.evaluate(held_images, held_labels)
        training.epoch, training.batch, training.loss_sum = training.epoch + 1, 0, 0.0
        training.metrics = f"train_loss={train_loss:.4f} val_loss={val_loss:.4f} val_accuracy={val_accuracy:.4f}"
        checkpoints.save(folder, training.epoch, training.state())
        print(f"epoch={training.epoch} {training.metrics} images_per_second={rate:.0f}", flush=True)
    save_model(training.model)


if __name__ == "__main__":
    main()
