"""What the rows of torch_sync_table.py compare, and how: bngrad's class, whose processes have parts of a batch, beside
PyTorch's, which has the whole batch in each process."""

import contextlib
import inspect
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn

from bngrad.torch import SyncBatchNorm

SIZES = {1: [8], 2: [5, 3]}
HAS_BIAS_ARGUMENT = "bias" in inspect.signature(nn.SyncBatchNorm).parameters
ROWS = {}


def row(function):
    """A row of the table: run by each process."""
    ROWS[function.__name__.replace("_", " ")] = function
    return function


@contextlib.contextmanager
def alone():
    """PyTorch's class as in a program of one process, where it takes data on the CPU."""
    with mock.patch.object(dist, "is_initialized", lambda: False):
        yield


def make_data(shape=(8, 3, 4, 5), dtype=torch.float64):
    """Input and gradient of the output of all processes, which differ by channel."""
    generator = torch.Generator().manual_seed(3)
    number = torch.arange(shape[1]).view(-1, *[1] * (len(shape) - 2))
    return [(torch.randn(shape, generator=generator, dtype=torch.float64) * (1 + 0.3 * number) + shift * number
             ).to(dtype) for shift in (1, 0.1)]


def fill(module):
    """Values that are not those of the constructor."""
    with torch.no_grad():
        for value in (*module.parameters(), *module.buffers()):
            if value.is_floating_point():
                value.copy_(torch.linspace(0.4, 1.7, value.numel()).view_as(value))
    return module


def train(module, x, grad):
    """Output and gradient of the input."""
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    y = module(x)
    y.backward(grad)
    return y.detach(), x.grad


def close(one, other, tolerance=1e-10):
    assert one.dtype == other.dtype and one.shape == other.shape
    scale = 1 + float(other.abs().max()) if other.numel() else 1
    torch.testing.assert_close(one.double(), other.double(), rtol=0, atol=tolerance * scale)


def check_state(ours, theirs, size, tolerance=1e-10):
    """Parameter gradients, whose sum over the processes is that of the whole batch, and buffers."""
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert one.requires_grad == other.requires_grad and (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            total = one.grad.clone()
            dist.all_reduce(total)
            close(total, other.grad, tolerance)
    for (name, one), (own_name, other) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        assert name == own_name
        close(one, other, tolerance)


def compare(rank, size, ours, theirs, data=None, tolerance=1e-10, steps=2):
    """Training steps of both."""
    for _ in range(steps):
        x, grad = data or make_data()
        with alone():
            expected = train(theirs, x, grad)
        parts = [value.split(SIZES[size])[rank] for value in (x, grad)]
        for one, other in zip(train(ours, *parts), expected):
            close(one, other.split(SIZES[size])[rank], tolerance)
    check_state(ours, theirs, size, tolerance)


def make_both(*arguments, theirs=nn.SyncBatchNorm, **keywords):
    keywords.setdefault("dtype", torch.float64)
    return fill(SyncBatchNorm(*arguments, **keywords)), fill(theirs(*arguments, **keywords))
