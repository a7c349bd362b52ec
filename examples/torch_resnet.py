"""Trains a small ResNet on digits with PyTorch, with and without BNGrad.

    PYTHONPATH=<folder of bngrad> python examples/torch_resnet.py [--steps=N] [--type=float32]

Needs PyTorch. Data are channels_last, and convolutions in bf16 by autocast. Both
networks are the same, with the same initial parameters and data; one of them
takes its steps with `bngrad.torch.enabled()`. Prints both losses, which are the same but
for rounding, steps per second, and the share of a step that the gradients of batch
normalization take.
"""

import argparse
import contextlib
import pathlib
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import bngrad.torch

DIGITS = pathlib.Path(__file__).resolve().parent / "digits"
BATCH = 64
# The op of a batch norm's gradient, in profiles.
GRADIENT = "aten::native_batch_norm_backward"


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.shortcut = nn.Identity()
        if stride > 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.shortcut(x))


def make_network():
    """Three blocks between a convolution and a classifier."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(memory_format=torch.channels_last)


def make_batches(steps):
    """Images of 32x32 with one channel, and labels: digits that are moved and noisy."""
    generator = np.random.default_rng(0)
    images, labels = np.load(DIGITS / "images.npy") / 16.0, np.load(DIGITS / "labels.npy")
    for _ in range(steps):
        chosen = generator.integers(0, len(images), BATCH)
        batch = np.kron(images[chosen].reshape(BATCH, 8, 8), np.ones((1, 4, 4)))
        batch = [np.roll(image, generator.integers(-4, 5, 2), (0, 1)) for image in batch]
        batch = np.stack(batch) + 0.2 * generator.standard_normal((BATCH, 32, 32))
        yield torch.from_numpy(batch[:, None]).float(), torch.from_numpy(labels[chosen]).long()


class Run:
    """One network in training; `mode()` is the context of each step."""

    def __init__(self, mode, type):
        self.mode, self.type = mode, type
        self.network = make_network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), 0.02, momentum=0.9)
        self.losses, self.seconds = [], []

    def step(self, images, labels):
        self.optimizer.zero_grad()
        images = images.to(memory_format=torch.channels_last)
        with self.mode():
            with torch.autocast("cpu", torch.bfloat16, enabled=self.type == "bfloat16"):
                logits = self.network(images)
            loss = functional.cross_entropy(logits.float(), labels)
            loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, images, labels):
        start = time.perf_counter()
        self.losses.append(self.step(images, labels))
        self.seconds.append(time.perf_counter() - start)

    def steps_per_second(self):
        """Without the first steps, which allocate memory."""
        return 1 / statistics.median(self.seconds[3:])

    def gradient_share(self, batch):
        """The share of the gradients of batch norms in the time of a step."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            start = time.perf_counter()
            self.step(*batch)
            seconds = time.perf_counter() - start
        events = [event for event in profile.key_averages() if event.key == GRADIENT]
        return sum(event.cpu_time_total for event in events) / 1e6 / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--type", choices=("float32", "bfloat16"), default="bfloat16")
    arguments = parser.parse_args()
    if arguments.steps < 5:
        parser.error(f"expected at least 5 steps, got {arguments.steps}")
    batches = list(make_batches(arguments.steps))
    runs = {"PyTorch": Run(contextlib.nullcontext, arguments.type),
            "with bngrad": Run(bngrad.torch.enabled, arguments.type)}
    for index, batch in enumerate(batches):
        # They take turns, so that both meet the same disturbances.
        for run in runs.values():
            run.train(*batch)
        if index % 10 == 0 or index == len(batches) - 1:
            print(f"step {index:3}: loss " + ", ".join(f"{run.losses[-1]:.6f}" for run in runs.values()), flush=True)
    theirs, ours = runs.values()
    difference = np.abs(np.subtract(ours.losses[:10], theirs.losses[:10])) / theirs.losses[:10]
    print(f"largest difference of the first 10 losses: {difference.max():.1e}")
    for name, run in runs.items():
        print(f"{name}: {run.steps_per_second():.2f} steps per second, "
              f"gradients of batch norms {run.gradient_share(batches[-1]):.1%} of a step")
    print(f"ratio {ours.steps_per_second() / theirs.steps_per_second():.3f}")


if __name__ == "__main__":
    main()
