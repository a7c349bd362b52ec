"""A training step of PyTorch with bngrad.torch beside one without; the argument is the root of the sources."""

import copy
import math
import sys

import torch
from torch.nn import functional

import bngrad.torch

root = sys.argv[1]
UNIT_ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}
SHAPE = (6, 5, 9, 7)
DIMS = (0, 2, 3)
COUNT = SHAPE[0] * SHAPE[2] * SHAPE[3]


def train(layer, x, weights):
    """The gradients of the layer in one step of SGD, and that of the layer's output."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = x.clone().requires_grad_()
    y = layer(x)
    y.retain_grad()
    (functional.relu(y) * weights).sum().backward()
    optimizer.step()
    return (x.grad, layer.weight.grad, layer.bias.grad), y.grad


def find_terms(x, grad_output, scale, epsilon):
    """The formulas of docs/mathematics.md with each term replaced by its absolute value."""
    d, x = grad_output.double().abs(), x.double()
    centered = (x - x.mean(DIMS, keepdim=True)).abs()
    inv_std = (centered.square().mean(DIMS, keepdim=True) + epsilon).rsqrt()
    offset, product = d.sum(DIMS, keepdim=True), (d * centered).sum(DIMS, keepdim=True)
    grad_input = (scale.double().abs().view(1, -1, 1, 1) * inv_std *
                  (d + offset / COUNT + centered * inv_std**2 * product / COUNT))
    return grad_input, (product * inv_std).flatten(), offset.flatten()


def find_bounds(gradients, terms):
    """Twice the bound of docs/numerics.md: each of two results is that far from the exact one."""
    growth = 4 * UNIT_ROUNDOFF[torch.float32] * (4 + math.log2(COUNT + 1))
    return [2 * (UNIT_ROUNDOFF[a.dtype] * a.double().abs() + growth * b) for a, b in zip(gradients, terms)]


def is_within(first, second, bounds):
    return all(((a.double() - b.double()).abs() <= bound).all() for a, b, bound in zip(first, second, bounds))


generator = torch.Generator().manual_seed(0)
layer = torch.nn.BatchNorm2d(SHAPE[1])
with torch.no_grad():
    layer.weight.copy_(torch.arange(SHAPE[1]) * 0.3 + 0.5)
    layer.bias.copy_(torch.arange(SHAPE[1]) * 0.1 - 0.2)
kernel = torch._C._dispatch_dump("aten::native_batch_norm_backward")
for dtype in UNIT_ROUNDOFF:
    x = (torch.randn(SHAPE, generator=generator) + torch.arange(SHAPE[1]).view(1, -1, 1, 1)).to(dtype)
    weights = torch.randn(SHAPE, generator=generator).to(dtype)
    plain, ours = copy.deepcopy(layer), copy.deepcopy(layer)
    expected, grad_output = train(plain, x, weights)
    bngrad.torch.enable()
    assert torch._C._dispatch_dump("aten::native_batch_norm_backward") != kernel
    gradients, _ = train(ours, x, weights)
    bngrad.torch.disable()
    assert torch._C._dispatch_dump("aten::native_batch_norm_backward") == kernel
    bounds = find_bounds(expected, find_terms(x, grad_output, layer.weight.detach(), layer.eps))
    assert is_within(gradients, expected, bounds), dtype
    # The bounds are not idle.
    for index, gradient in enumerate(gradients):
        wrong = list(gradients)
        wrong[index] = gradient.roll(1, 1 if gradient.dim() > 1 else 0)
        assert not is_within(wrong, expected, bounds), (dtype, index)
    assert not torch.equal(ours.weight, layer.weight)
    torch.testing.assert_close((ours.running_mean, ours.running_var), (plain.running_mean, plain.running_var))

with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
assert not [path for path in paths if path.startswith(root + "/")], paths
assert [path for path in paths if path.startswith(sys.prefix) and path.endswith("/libbngrad_torch.so")], paths
print(f"torch {torch.__version__}")
