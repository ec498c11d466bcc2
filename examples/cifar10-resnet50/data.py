"""CIFAR-10 in memory, in an order and with an augmentation that depend on nothing but the seed, the epoch and the batch."""
import os
from pathlib import Path

import torch
from torch.nn import functional
from torchvision.datasets import CIFAR10

MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)
PADDING = 4


def load(synthetic, seed):
    """Training and test images as bytes (number, 3, 32, 32), and their labels."""
    if synthetic:
        return random_images(synthetic, seed)
    # On the workspace: an attempt after the first finds it there.
    folder = Path(os.environ.get("SPOTSWEEP_DATASETS", "/dltraining/datasets"))
    parts = [CIFAR10(folder, train=train, download=True) for train in (True, False)]
    tensors = []
    for part in parts:
        tensors += [torch.from_numpy(part.data).permute(0, 3, 1, 2).contiguous(), torch.tensor(part.targets)]
    return tensors


def random_images(number, seed):
    """Images in which one channel's brightness tells the class, so that something can be learnt."""
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for count in (number, max(number // 4, 1)):
        labels = torch.randint(0, 10, (count,), generator=generator)
        noise = torch.randint(0, 64, (count, 3, 32, 32), generator=generator)
        noise[:, 0] += labels.view(-1, 1, 1) * 19
        tensors += [noise.to(torch.uint8), labels]
    return tensors


def generator(*numbers):
    """Random numbers that follow from `numbers`, on the CPU: a GPU's would differ between models."""
    seed = 0
    for number in numbers:
        seed = (seed * 1_000_003 + number + 1) % 2**63
    return torch.Generator().manual_seed(seed)


def order(number, seed, epoch):
    return torch.randperm(number, generator=generator(seed, epoch))


def normalised(images):
    mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, DEVIATION))
    return (images.float() / 255 - mean) / deviation


def augmented(images, seed, epoch, batch):
    """Each image shifted by up to four pixels and mirrored half of the time."""
    random = generator(seed, epoch, batch)
    size = images.shape[-1]
    padded = functional.pad(normalised(images), [PADDING] * 4)
    top, left = torch.randint(0, 2 * PADDING + 1, (2, len(images)), generator=random)
    pixels = torch.arange(size)
    rows, columns = top.view(-1, 1) + pixels, left.view(-1, 1) + pixels
    mirrored = torch.rand(len(images), generator=random) < 0.5
    columns = torch.where(mirrored.view(-1, 1), columns.flip(1), columns)
    which = torch.arange(len(images)).view(-1, 1, 1)
    return padded.permute(0, 2, 3, 1)[which, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2)
