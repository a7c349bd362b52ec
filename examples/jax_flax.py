"""Trains a small ResNet on digits with flax, with and without BNGrad.

    PYTHONPATH=<folder of bngrad> python examples/jax_flax.py [--steps=N] [--type=bfloat16]

Needs jax and flax. The networks differ in one argument, the class of their batch
normalization, and share initial parameters and data. Prints both losses, which are
the same but for rounding, and steps per second.
"""

import argparse
import pathlib
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import bngrad.flax

DIGITS = pathlib.Path(__file__).resolve().parent / "digits"
BATCH = 64


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    width: int
    stride: int
    norm: type

    @nn.compact
    def __call__(self, x):
        shortcut = x
        y = nn.Conv(self.width, (3, 3), self.stride, use_bias=False, dtype=x.dtype)(x)
        y = nn.relu(self.norm(use_running_average=False, dtype=x.dtype)(y))
        y = nn.Conv(self.width, (3, 3), use_bias=False, dtype=x.dtype)(y)
        y = self.norm(use_running_average=False, dtype=x.dtype)(y)
        if shortcut.shape != y.shape:
            shortcut = nn.Conv(self.width, (1, 1), self.stride, use_bias=False, dtype=x.dtype)(shortcut)
            shortcut = self.norm(use_running_average=False, dtype=x.dtype)(shortcut)
        return nn.relu(y + shortcut)


class ResNet(nn.Module):
    """Three blocks between a convolution and a classifier."""

    norm: type
    type: str

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (3, 3), use_bias=False, dtype=self.type)(x.astype(self.type))
        x = nn.relu(self.norm(use_running_average=False, dtype=self.type)(x))
        for width, stride in ((16, 1), (32, 2), (64, 2)):
            x = Block(width, stride, self.norm)(x)
        return nn.Dense(10)(x.mean((1, 2)).astype(jnp.float32))


def make_batches(steps):
    """Images of 32x32 with one channel, and labels: digits that are moved and noisy."""
    generator = np.random.default_rng(0)
    images, labels = np.load(DIGITS / "images.npy") / 16.0, np.load(DIGITS / "labels.npy")
    for _ in range(steps):
        chosen = generator.integers(0, len(images), BATCH)
        batch = np.kron(images[chosen].reshape(BATCH, 8, 8), np.ones((1, 4, 4)))
        batch = [np.roll(image, generator.integers(-4, 5, 2), (0, 1)) for image in batch]
        batch = np.stack(batch) + 0.2 * generator.standard_normal((BATCH, 32, 32))
        yield batch[..., None].astype(np.float32), labels[chosen].astype(np.int32)


def make_step(network):
    """A compiled step of gradient descent with momentum."""
    def loss_of(parameters, statistics, images, labels):
        variables = {"params": parameters, "batch_stats": statistics}
        logits, updates = network.apply(variables, images, mutable=["batch_stats"])
        logits = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean(), updates["batch_stats"]

    def step(state, images, labels):
        parameters, velocity, statistics = state
        (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            parameters, statistics, images, labels)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        parameters = jax.tree.map(lambda p, v: p - 0.02 * v, parameters, velocity)
        return (parameters, velocity, statistics), loss

    return jax.jit(step)


class Run:
    """One network in training."""

    def __init__(self, norm, type, images):
        network = ResNet(norm, type)
        variables = network.init(jax.random.key(0), images)
        velocity = jax.tree.map(jnp.zeros_like, variables["params"])
        self.state = variables["params"], velocity, variables["batch_stats"]
        self.step = make_step(network)
        self.losses, self.seconds = [], []

    def train(self, images, labels):
        start = time.perf_counter()
        self.state, loss = self.step(self.state, images, labels)
        self.losses.append(float(loss))
        self.seconds.append(time.perf_counter() - start)

    def steps_per_second(self):
        """The first step is compiled."""
        return 1 / np.median(self.seconds[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--type", choices=("float32", "bfloat16"), default="float32")
    arguments = parser.parse_args()
    batches = list(make_batches(arguments.steps))
    runs = {
        "flax.linen.BatchNorm": Run(nn.BatchNorm, arguments.type, batches[0][0]),
        "bngrad.flax.BatchNorm": Run(bngrad.flax.BatchNorm, arguments.type, batches[0][0]),
    }
    for index, batch in enumerate(batches):
        # They take turns, so that both meet the same disturbances.
        for run in runs.values():
            run.train(*batch)
        if index % 10 == 0 or index == len(batches) - 1:
            print(f"step {index:3}: loss " + ", ".join(f"{run.losses[-1]:.6f}" for run in runs.values()), flush=True)
    theirs, ours = runs.values()
    first = min(10, len(batches))
    difference = np.abs(np.subtract(ours.losses[:first], theirs.losses[:first])) / theirs.losses[:first]
    print(f"largest difference of the first {first} losses: {difference.max():.1e}")
    for name, run in runs.items():
        print(f"{name}: {run.steps_per_second():.2f} steps per second")
    print(f"ratio {ours.steps_per_second() / theirs.steps_per_second():.2f}")


if __name__ == "__main__":
    main()
