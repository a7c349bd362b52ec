"""Writes the arrays of this example: one batch norm of a small trained network.

The network is conv 3x3 -> batch norm -> ReLU -> 2x2 average pool -> linear ->
softmax cross entropy, on real images. It is trained for a few steps, then the
arrays at the batch norm are recorded in one more step. The expected gradients
are computed by the tape in autodiff.py, which differentiates through mean and
variance as functions of the input; they are checked here against finite
differences of the loss.

A second run writes bitwise identical files.
"""

import argparse
import sys
from pathlib import Path
from typing import Dict, NamedTuple

import numpy as np

sys.dont_write_bytecode = True  # write only the arrays
import compare
from autodiff import Value, backward, exact_sum, lift

HERE = Path(__file__).resolve().parent
IMAGES, CHANNELS, CLASSES = 64, 8, 10
SIZE, POOLED, TAPS = 8, 4, 9
EPSILON = 1.0e-5
REDUCED = (0, 2, 3)  # NCHW without the channels
STEPS, LEARNING_RATE, SEED = 12, 0.5, 20


class Network(NamedTuple):
    """The parameters. `kernel` 9x1x8x1x1 (tap, ., out), `scale` and `offset`
    1x8x1x1, `weight` 1x10x128, `bias` 1x10."""
    kernel: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    weight: np.ndarray
    bias: np.ndarray


def initial_network() -> Network:
    """Draws the parameters. `RandomState` is numpy's frozen generator: its
    numbers are the same in every version. Scale and offset differ per channel
    from the start."""
    random = np.random.RandomState(SEED)
    features = CHANNELS * POOLED * POOLED
    return Network(
        kernel=random.uniform(-0.8, 0.8, (TAPS, 1, CHANNELS, 1, 1)),
        scale=random.uniform(0.5, 1.5, (1, CHANNELS, 1, 1)),
        offset=random.uniform(-0.4, 0.4, (1, CHANNELS, 1, 1)),
        weight=random.uniform(-1, 1, (1, CLASSES, features)) / features**0.5,
        bias=np.zeros((1, CLASSES)))


def taps(images: np.ndarray) -> np.ndarray:
    """N x 8 x 8 images, padded by one -> 9 x N x 1 x 8 x 8, one per tap."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    return np.stack([padded[:, None, y:y + SIZE, x:x + SIZE]
                     for y in range(3) for x in range(3)])


def batch_norm(x: Value, scale: Value, offset: Value) -> Value:
    """Batch norm over N, H, W with its own statistics; all shapes NCHW."""
    mean = x.mean(REDUCED)
    centered = x - mean
    variance = (centered * centered).mean(REDUCED)
    return centered / (variance + EPSILON).sqrt() * scale + offset


def loss_after_batch_norm(y: Value, weight: Value, bias: Value,
                          labels: np.ndarray) -> Value:
    """Mean cross entropy of the digits, from the batch norm's output NCHW."""
    pooled = y.relu().reshape(-1, CHANNELS, POOLED, 2, POOLED, 2).mean((3, 5))
    features = pooled.reshape(-1, 1, CHANNELS * POOLED * POOLED)
    logits = (features * weight).sum((2,)).reshape(-1, CLASSES) + bias
    shifted = logits - logits.data.max(axis=1, keepdims=True)
    chosen = (shifted * np.eye(CLASSES)[labels]).sum((1,))
    return (shifted.exp().sum((1,)).log() - chosen).mean((0, 1))


def train(network: Network, patches: np.ndarray,
          labels: np.ndarray) -> Network:
    """Takes a few steps of plain gradient descent and prints the losses."""
    losses = []
    for _ in range(STEPS):
        kernel, scale, offset, weight, bias = map(lift, network)
        x = (kernel * patches).sum((0,)).reshape(-1, CHANNELS, SIZE, SIZE)
        y = batch_norm(x, scale, offset)
        loss = loss_after_batch_norm(y, weight, bias, labels)
        backward(loss)
        losses.append(loss.data.item())
        network = Network(*(p.data - LEARNING_RATE * p.grad
                            for p in (kernel, scale, offset, weight, bias)))
    print(f"training loss {losses[0]:.4f} -> {losses[-1]:.4f} "
          f"in {STEPS} steps")
    return network


def convolve(network: Network, patches: np.ndarray) -> np.ndarray:
    """The batch norm's input, NCHW."""
    x = (lift(network.kernel) * patches).sum((0,))
    return x.data.reshape(-1, CHANNELS, SIZE, SIZE)


def gradients_of(grad_output: np.ndarray, x: np.ndarray,
                 scale: np.ndarray) -> Dict[str, np.ndarray]:
    """Differentiates sum(grad_output * batch_norm(x)) with the tape."""
    values = Value(x), Value(scale), Value(np.zeros_like(scale))
    y = batch_norm(*values)
    backward((y * grad_output).sum((0, 1, 2, 3)))
    return {"grad_input": values[0].grad,
            "grad_scale": values[1].grad.reshape(CHANNELS),
            "grad_offset": values[2].grad.reshape(CHANNELS)}


def check_differences(network: Network, x: np.ndarray, labels: np.ndarray,
                      gradients: Dict[str, np.ndarray]) -> None:
    """Compares sampled entries with central differences of the whole loss.

    `x` NCHW is the batch norm's input. Entries of `x` whose output is close to
    the kink of the ReLU are omitted: there the loss has no derivative. Asserts
    that the largest difference is small relative to the largest entry.
    """
    places = {"grad_input": x.copy(), "grad_scale": network.scale.copy(),
              "grad_offset": network.offset.copy()}

    def loss() -> float:
        y = batch_norm(*(lift(places[name]) for name in places))
        return loss_after_batch_norm(y, lift(network.weight),
                                     lift(network.bias), labels).data.item()

    y = batch_norm(lift(x), lift(network.scale), lift(network.offset)).data
    away = np.flatnonzero(np.abs(y) > 0.05)
    random = np.random.RandomState(SEED + 1)
    samples = {"grad_input": (random.choice(away, 24, replace=False), 1e-3),
               "grad_scale": (np.arange(CHANNELS), 1e-5),
               "grad_offset": (np.arange(CHANNELS), 1e-5)}
    for name, (entries, step) in samples.items():
        flat, expected = places[name].reshape(-1), gradients[name].reshape(-1)
        worst = 0.0
        for entry in entries:
            middle, ends = flat[entry], []
            for flat[entry] in (middle + step, middle - step):
                ends.append(loss())
            flat[entry] = middle
            difference = (ends[0] - ends[1]) / (2 * step) - expected[entry]
            worst = max(worst, abs(difference) / np.abs(expected).max())
        print(f"{name} finite differences of the loss, {len(entries)} entries: "
              f"worst relative difference {worst:.1e}")
        assert worst < 1e-7, name  # float32 grad_output alone costs 6e-8


def check_statistics(arrays: Dict[str, np.ndarray],
                     gradients: Dict[str, np.ndarray]) -> None:
    """Prints the effect of rounding mean and variance to float32 on the
    gradients, and asserts that compare.py allows for it."""
    rounded = compare.closed_form(arrays)
    terms = compare.closed_form(arrays, absolute=True)
    for name, expected in gradients.items():
        change = np.abs(rounded[name] - expected)
        units = float((change / (compare.U_F32 * terms[name])).max())
        print(f"{name} effect of float32 statistics: "
              f"{change.max() / np.abs(expected).max():.1e} of the largest "
              f"entry, {units:.2f} units of the bound")
        assert units <= compare.STATISTICS_UNITS, name


def save_images() -> None:
    """Extracts the first images of the digits that scikit-learn ships."""
    from sklearn.datasets import load_digits
    digits = load_digits()
    images = digits.images[:IMAGES]
    assert (images == images.astype(np.uint8)).all()
    np.save(HERE / "images.npy", images.astype(np.uint8))
    np.save(HERE / "labels.npy", digits.target[:IMAGES].astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images-from-sklearn", action="store_true",
                        help="first extract images.npy and labels.npy again "
                             "(needs scikit-learn)")
    if parser.parse_args().images_from_sklearn:
        save_images()
    images, labels = np.load(HERE / "images.npy"), np.load(HERE / "labels.npy")
    patches = taps(images / 16.0)  # grey values are 0..16
    network = train(initial_network(), patches, labels)

    # The files contain float32, so the rest uses rounded values.
    x32 = convolve(network, patches).astype(np.float32)
    scale32 = network.scale.astype(np.float32)
    network = network._replace(scale=scale32.astype(np.float64))
    x = x32.astype(np.float64)
    y = batch_norm(lift(x), lift(network.scale), lift(network.offset))
    backward(loss_after_batch_norm(y, lift(network.weight),
                                   lift(network.bias), labels))
    grad_output32 = y.grad.astype(np.float32)

    count = x[:, 0].size
    mean = exact_sum(x, REDUCED) / count
    centered = x - mean.reshape(1, CHANNELS, 1, 1)
    variance = exact_sum(centered * centered, REDUCED) / count
    arrays = {"grad_output": grad_output32, "input": x32,
              "scale": scale32.reshape(CHANNELS),
              "mean": mean.astype(np.float32),
              "variance": variance.astype(np.float32)}
    gradients = gradients_of(grad_output32.astype(np.float64), x, network.scale)

    for name in ("scale", "mean", "variance"):
        assert len(set(arrays[name].tolist())) == CHANNELS, name
    check_differences(network, x, labels, gradients)
    check_statistics(arrays, gradients)
    for name, array in arrays.items():
        np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))
    for name, array in gradients.items():
        np.save(HERE / f"expected_{name}.npy", np.ascontiguousarray(array))


if __name__ == "__main__":
    main()
