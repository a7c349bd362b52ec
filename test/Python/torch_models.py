# RUN: %python -m pytest -q -s %s
# REQUIRES: torch, torchvision, timm, long
"""Trains eleven networks of torchvision and timm for ten steps, beside PyTorch.

A network of f64 takes the steps. In each step, networks of f32 have its parameters: one with PyTorch's batch norms, and
one with those of bngrad. So all differences are rounding errors, which do not grow from step to step.
"""

import contextlib
import statistics
import sys

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional

import bngrad.torch

# Tests run side by side, and threads that wait for others take their time.
torch.set_num_threads(1)
STEPS, CLASSES = 10, 10
# Most errors are those of convolutions, which both networks have. Ours are at most this multiple of PyTorch's.
MOST = 2
TORCHVISION = ["resnet18", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "shufflenet_v2_x0_5",
               "regnet_y_400mf"]
TIMM = ["resnet10t", "efficientnet_lite0", "ghostnet_100", "lcnet_050"]


def make_network(name):
    torch.manual_seed(0)
    network = (torchvision.models.get_model(name, num_classes=CLASSES) if name in TORCHVISION else
               timm.create_model(name, num_classes=CLASSES, drop_rate=0.0))
    for module in network.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return network


def run_step(network, forward, images, labels):
    network.zero_grad()
    loss = functional.cross_entropy(forward(images), labels)
    loss.backward()
    return loss.detach()


# Errors of gradients in all steps of all networks, divided by those of PyTorch's network.
RATIOS = []


class Errors:
    """Relative errors of a network."""

    def __init__(self):
        self.losses, self.gradients = [], []

    def add_step(self, network, loss, exact, exact_loss):
        self.losses.append(float(abs(loss - exact_loss) / exact_loss))
        pairs = [(one.grad, other.grad) for one, other in zip(network.parameters(), exact.parameters())]
        difference = sum(float((one - other).square().sum()) for one, other in pairs)
        size = sum(float(other.square().sum()) for _, other in pairs)
        self.gradients.append((difference / size)**0.5)

    def finish(self, network, exact):
        """Adds the running statistics, relative to the standard deviations and variances of channels."""
        self.loss = statistics.median(self.losses)
        self.mean = self.variance = 0.0
        for one, other in zip(network.modules(), exact.modules()):
            if isinstance(other, nn.modules.batchnorm._BatchNorm):
                variance = other.running_var + other.eps
                self.mean = max(self.mean, float(((one.running_mean - other.running_mean) / variance.sqrt()).abs().max()))
                self.variance = max(self.variance, float(((one.running_var - other.running_var) / variance).abs().max()))
                assert one.num_batches_tracked == other.num_batches_tracked


def train(name, memory_format, compile):
    """The errors of the network with bngrad, and of PyTorch's."""
    exact = make_network(name).double()
    networks = [make_network(name).to(memory_format=memory_format) for _ in range(2)]
    errors = [Errors(), Errors()]
    optimizer = torch.optim.SGD(exact.parameters(), lr=0.01, momentum=0.9)
    forwards = [torch.compile(networks[0], fullgraph=True) if compile else networks[0], networks[1]]
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        images = torch.randn(8, 3, 64, 64, generator=generator).to(memory_format=memory_format)
        labels = torch.randint(CLASSES, (8,), generator=generator)
        exact_loss = run_step(exact, exact, images.double(), labels)
        for i in range(2):
            with torch.no_grad():
                for one, other in zip(networks[i].parameters(), exact.parameters()):
                    one.copy_(other)
            with bngrad.torch.enabled(compile=compile) if i == 0 else contextlib.nullcontext():
                loss = run_step(networks[i], forwards[i], images, labels)
            errors[i].add_step(networks[i], loss, exact, exact_loss)
        optimizer.step()
        with torch.no_grad():
            for parameter in exact.parameters():
                parameter.copy_(parameter.float())
    for i in range(2):
        errors[i].finish(networks[i], exact)
    return errors


def check(name, memory_format, compile=False):
    ours, theirs = train(name, memory_format, compile)
    pairs = {key: (getattr(ours, key), getattr(theirs, key)) for key in ("loss", "mean", "variance")}
    print(f"\n{name}, {str(memory_format)[6:]}{', compiled' * compile}:",
          *(f"{key} {one:.2g} / {other:.2g}" for key, (one, other) in pairs.items()), "gradient",
          *(f"{one:.2g} / {other:.2g}" for one, other in zip(ours.gradients, theirs.gradients)), flush=True)
    RATIOS.extend(one / other for one, other in zip(ours.gradients, theirs.gradients))
    for key, (one, other) in pairs.items():
        assert one <= MOST * other + 2.0**-23, key


@pytest.mark.parametrize("number", range(len(TORCHVISION + TIMM)), ids=TORCHVISION + TIMM)
def test_network(number):
    check((TORCHVISION + TIMM)[number], [torch.contiguous_format, torch.channels_last][number % 2])


def test_compiled_network():
    check("resnet18", torch.channels_last, compile=True)


def test_gradients():
    """Of all steps together: in many of them, a rounding error changes the sign of an element before a ReLU in one of
    both networks, and with it the gradient far more than rounding does."""
    if not RATIOS:
        pytest.skip("no network was trained")
    mean = statistics.geometric_mean(RATIOS)
    print(f"\n{len(RATIOS)} gradients: {mean:.2g} of PyTorch's error")
    assert mean <= MOST


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-s"]))
