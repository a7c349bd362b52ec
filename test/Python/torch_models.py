# RUN: %python -m pytest -q -s %s
# REQUIRES: torch, torchvision, timm, long
"""Trains eleven networks of torchvision and timm for ten steps, beside PyTorch.

A network of f64 takes the steps. In each step, networks of f32 have its parameters: one with PyTorch's batch norms, and
one with those of bngrad. So all differences are rounding errors, which do not grow from step to step.
"""

import contextlib
import sys

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional

import bngrad.torch

STEPS, CLASSES = 10, 10
# Most errors are those of convolutions, which both networks have: ours are at most this multiple of PyTorch's.
MOST = 1.5
TORCHVISION = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "densenet121", "shufflenet_v2_x1_0",
               "regnet_y_400mf"]
TIMM = ["efficientnet_lite0", "ghostnet_100", "dla34", "resnest14d"]


def make_network(name):
    torch.manual_seed(0)
    network = (torchvision.models.get_model(name, num_classes=CLASSES) if name in TORCHVISION else
               timm.create_model(name, num_classes=CLASSES))
    for module in network.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return network


def run_step(network, forward, images, labels):
    network.zero_grad()
    loss = functional.cross_entropy(forward(images), labels)
    loss.backward()
    return loss.detach()


class Errors:
    """Relative errors of a network, of which the greatest of all steps counts."""

    def __init__(self):
        self.loss = self.gradient = 0.0

    def add_step(self, network, loss, exact, exact_loss):
        self.loss = max(self.loss, float(abs(loss - exact_loss) / exact_loss))
        pairs = [(one.grad, other.grad) for one, other in zip(network.parameters(), exact.parameters())]
        difference = sum(float((one - other).square().sum()) for one, other in pairs)
        size = sum(float(other.square().sum()) for _, other in pairs)
        self.gradient = max(self.gradient, (difference / size)**0.5)

    def finish(self, network, exact):
        """The running statistics, relative to the standard deviations and variances of channels."""
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
    print(f"\n{name}, {str(memory_format)[6:]}{', compiled' * compile}:",
          *(f"{key} {getattr(ours, key):.2g} / {getattr(theirs, key):.2g}" for key in vars(ours)))
    for key in vars(ours):
        assert getattr(ours, key) <= MOST * getattr(theirs, key) + 2.0**-23, key


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("name", TORCHVISION + TIMM)
def test_network(name, memory_format):
    check(name, memory_format)


def test_compiled_network():
    check("resnet18", torch.contiguous_format, compile=True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-s"]))
