"""Rows of torch_sync_table.py: arguments, and attributes that change after construction."""

import inspect

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch_sync_rows import (HAS_BIAS_ARGUMENT, SIZES, alone, check_state, close, compare, fill, make_both,
                             make_data, row, train)

from bngrad.torch import SyncBatchNorm


@row
def signature(rank, size):
    own, other = (inspect.signature(each).parameters for each in (SyncBatchNorm, nn.SyncBatchNorm))
    names = [name for name in own if name in other or name != "bias"]
    assert names == list(other) and list(own)[-1] == "bias" and own["bias"].kind is inspect.Parameter.KEYWORD_ONLY
    assert all(own[name].default == other[name].default and own[name].kind == other[name].kind for name in other)


@row
def eps(rank, size):
    compare(rank, size, *make_both(3, eps=0.3))


@row
def momentum(rank, size):
    for value in (0.1, 0.7, 0, 1):
        compare(rank, size, *make_both(3, momentum=value))


@row
def momentum_None(rank, size):
    ours, theirs = make_both(3, momentum=None)
    compare(rank, size, ours, theirs, steps=3)
    assert ours.num_batches_tracked == 3


@row
def affine(rank, size):
    compare(rank, size, *make_both(3, affine=False))


@row
def track_running_stats(rank, size):
    ours, theirs = make_both(3, track_running_stats=False)
    compare(rank, size, ours, theirs)
    assert ours.running_mean is ours.num_batches_tracked is None
    # In evaluation, the statistics are those of the part.
    x, grad = (value.split(SIZES[size])[rank] for value in make_data())
    for one, other in zip(train(ours.eval(), x, grad), train(theirs.eval(), x, grad)):
        close(one, other)


@row
def bias(rank, size):
    ours = fill(SyncBatchNorm(3, bias=False, dtype=torch.float64))
    theirs = fill(nn.SyncBatchNorm(3, dtype=torch.float64))
    if HAS_BIAS_ARGUMENT:
        theirs = fill(nn.SyncBatchNorm(3, dtype=torch.float64, bias=False))
    theirs.bias = None
    assert ours.bias is None and ours.weight is not None
    compare(rank, size, ours, theirs)
    ours.reset_parameters()
    assert torch.equal(ours.weight, torch.ones(3, dtype=torch.float64))


@row
def process_group(rank, size):
    groups = [dist.new_group([each]) for each in range(size)]
    ours, theirs = make_both(3)
    ours.process_group = groups[rank]
    x, grad = (value.split(SIZES[size])[rank] for value in make_data())
    with alone():
        expected = train(theirs, x, grad)
    for one, other in zip(train(ours, x, grad), expected):
        close(one, other)
    # Of a group of others, a process has none.
    ours.process_group = groups[-1]
    ours(x)


@row
def device_and_dtype(rank, size):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        ours, theirs = make_both(3, dtype=dtype)
        tolerance = {torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float32: 1e-5}[dtype]
        compare(rank, size, ours, theirs, make_data(dtype=dtype), tolerance, steps=1)
    assert SyncBatchNorm(3, device="meta").weight.is_meta


@row
def track_running_stats_set_to_False(rank, size):
    """The buffers stay, in value and version, so that an earlier evaluation has a gradient."""
    ours, theirs = make_both(3)
    with torch.no_grad():
        for module in (ours, theirs):
            module.running_mean[0], module.running_var[1] = -torch.inf, torch.inf
            module.track_running_stats = False
    x, _ = make_data()
    before = [value.clone() for value in ours.buffers()]
    versions = [value._version for value in ours.buffers()]
    earlier = ours.eval()(x.clone().requires_grad_())
    compare(rank, size, ours.train(), theirs)
    assert all(torch.equal(one, other) for one, other in zip(ours.buffers(), before))
    assert [value._version for value in ours.buffers()] == versions
    earlier.sum().backward()


@row
def track_running_stats_set_to_True(rank, size):
    """PyTorch's SyncBatchNorm fails without a number of batches; BatchNorm does not."""
    ours, theirs = make_both(3, track_running_stats=False)
    ours.track_running_stats = theirs.track_running_stats = True
    with alone(), pytest.raises(AssertionError):
        theirs(make_data()[0])
    theirs = fill(nn.BatchNorm2d(3, track_running_stats=False, dtype=torch.float64))
    theirs.track_running_stats = True
    compare(rank, size, ours, theirs)


@row
def num_batches_tracked_None(rank, size):
    for momentum in (0.1, None):
        ours, theirs = (fill(each(3, momentum=momentum, dtype=torch.float64)) for each in (SyncBatchNorm, nn.BatchNorm2d))
        ours.num_batches_tracked = theirs.num_batches_tracked = None
        compare(rank, size, ours, theirs)


@row
def one_running_statistic(rank, size):
    x = make_data()[0]
    for missing, other in (("running_var", "running_mean"), ("running_mean", "running_var")):
        modules = make_both(3, theirs=nn.BatchNorm2d)
        for module in modules:
            setattr(module, missing, None)
        for is_training in (True, False):
            message = f"^{missing}: expected a tensor, as {other} is one, got None$"
            for module, expected in zip(modules, (message, "")):
                with pytest.raises((ValueError, RuntimeError), match=expected):
                    module.train(is_training)(x)
        for module in modules:
            module.train().track_running_stats = False
            # PyTorch counts the batch before it raises the error.
            module.num_batches_tracked.zero_()
        compare(rank, size, *modules)


@row
def weight_None(rank, size):
    ours, theirs = make_both(3)
    ours.weight = theirs.weight = None
    compare(rank, size, ours, theirs)


@row
def bias_None(rank, size):
    ours, theirs = make_both(3)
    ours.bias = theirs.bias = None
    compare(rank, size, ours, theirs)


@row
def requires_grad(rank, size):
    for names in (("weight",), ("bias",), ("weight", "bias")):
        ours, theirs = make_both(3)
        for module in (ours, theirs):
            for name in names:
                getattr(module, name).requires_grad_(False)
        compare(rank, size, ours, theirs)
    ours, theirs = make_both(3)
    x, grad = make_data()
    with alone():
        theirs(x).backward(grad)
    ours(x.split(SIZES[size])[rank]).backward(grad.split(SIZES[size])[rank])
    check_state(ours, theirs, size)


@row
def training(rank, size):
    ours, theirs = make_both(3)
    compare(rank, size, ours, theirs)
    ours.eval(), theirs.eval()
    x, grad = (value.split(SIZES[size])[rank] for value in make_data())
    for one, other in zip(train(ours, x, grad), train(theirs, x, grad)):
        close(one, other)
    assert ours.num_batches_tracked == 2
    # Gradients were those of the part.
    ours.zero_grad(), theirs.zero_grad()
    with torch.no_grad(), alone():
        expected = theirs.train()(make_data()[0])
    with torch.no_grad():
        close(ours.train()(x), expected.split(SIZES[size])[rank])
    check_state(ours, theirs, size)


@row
def reset_running_stats(rank, size):
    ours, theirs = make_both(3)
    compare(rank, size, ours, theirs)
    for module in (ours, theirs):
        module.reset_running_stats()
    check_state(ours, theirs, size)
    for module in (ours, theirs):
        module.reset_parameters()
    assert all(torch.equal(one, other) for one, other in zip(ours.parameters(), theirs.parameters()))
    for module in (ours, theirs):
        module.zero_grad()
    compare(rank, size, ours, theirs)
