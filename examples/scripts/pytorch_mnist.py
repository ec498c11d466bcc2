"""The output of PyTorch's own MNIST example, on random images."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(args, model, loader, optimizer, epoch):
    model.train()
    for batch, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch % args.log_interval == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                epoch, batch * len(data), len(loader.dataset), 100. * batch / len(loader), loss.item()))


def test(model, loader):
    model.eval()
    test_loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(1).eq(target).sum().item()
    test_loss /= len(loader.dataset)
    print("\nTest set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)\n".format(
        test_loss, correct, len(loader.dataset), 100. * correct / len(loader.dataset)))


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1.0)
parser.add_argument("--gamma", type=float, default=0.7)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--log-interval", type=int, default=10)
parser.add_argument("--save-dir", default=".")
args = parser.parse_args()
torch.manual_seed(1)
images = torch.randn(2048, 28 * 28)
labels = images[:, :10].argmax(1)
train_loader = DataLoader(TensorDataset(images[:1536], labels[:1536]), batch_size=64)
test_loader = DataLoader(TensorDataset(images[1536:], labels[1536:]), batch_size=256)
model = nn.Sequential(nn.Linear(28 * 28, 32), nn.ReLU(), nn.Linear(32, 10), nn.LogSoftmax(dim=1))
optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=args.gamma)
path, first = os.path.join(args.save_dir, "mnist_cnn.pt"), 1
if os.path.exists(path):
    state = torch.load(path)
    first = state["epoch"] + 1
    for part in (model, optimizer, scheduler):
        part.load_state_dict(state[type(part).__name__])
for epoch in range(first, args.epochs + 1):
    train(args, model, train_loader, optimizer, epoch)
    test(model, test_loader)
    scheduler.step()
    state = {type(part).__name__: part.state_dict() for part in (model, optimizer, scheduler)}
    torch.save({"epoch": epoch, **state}, path)
