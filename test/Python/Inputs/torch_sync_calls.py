"""Rows of torch_sync_table.py: inputs, and transformations of calls."""

import contextlib

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch_sync_rows import SIZES, alone, check_state, close, compare, make_both, make_data, row, train

from bngrad.torch import SyncBatchNorm


@row
def shapes(rank, size):
    for shape in ((8, 3), (8, 3, 5), (8, 3, 2, 3, 2), (8, 3, 1, 2, 2, 2)):
        compare(rank, size, *make_both(3), make_data(shape))


@row
def memory_formats(rank, size):
    for shape, memory_format in (((8, 3, 4, 5), torch.channels_last), ((8, 3, 2, 4, 5), torch.channels_last_3d)):
        data = [value.to(memory_format=memory_format) for value in make_data(shape)]
        compare(rank, size, *make_both(3), data)
        part = data[0].split(SIZES[size])[rank]
        y, grad = train(SyncBatchNorm(3, dtype=torch.float64), part, part)
        assert y.is_contiguous(memory_format=memory_format) and grad.is_contiguous(memory_format=memory_format)
    strided = [value.transpose(2, 3) for value in make_data()]
    compare(rank, size, *make_both(3), strided)
    expanded = make_data((8, 3, 1, 1))[0].expand(8, 3, 4, 5)
    compare(rank, size, *make_both(3), (make_data()[0], expanded))


@row
def mixed_types(rank, size):
    """Data of 16 bits, parameters of 32."""
    for dtype, tolerance in ((torch.bfloat16, 3e-2), (torch.float16, 4e-3)):
        compare(rank, size, *make_both(3, dtype=torch.float32), make_data(dtype=dtype), tolerance)


@row
def autocast(rank, size):
    """Of convolutions before it, the data have 16 bits."""
    ours, theirs = make_both(3, dtype=torch.float32)
    data = make_data(dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        compare(rank, size, ours, theirs, data, 3e-2)


@row
def an_empty_part(rank, size):
    x, grad = make_data()
    ours, theirs = make_both(3)
    with alone():
        expected = train(theirs, x, grad)
    count = len(x) if rank == size - 1 else 0
    for one, other in zip(train(ours, x[:count], grad[:count]), expected):
        close(one, other[:count])
    check_state(ours, theirs, size)


@row
def all_parts_empty(rank, size):
    """The batch is counted; running statistics stay."""
    ours, theirs = make_both(3)
    empty = torch.zeros(0, 3, 4, 5, dtype=torch.float64)
    before = [value.clone() for value in ours.buffers()]
    y, grad = train(ours, empty, empty)
    assert y.shape == grad.shape == empty.shape and all(parameter.grad.eq(0).all() for parameter in ours.parameters())
    after = list(ours.buffers())
    assert torch.equal(after[0], before[0]) and torch.equal(after[1], before[1]) and after[2] == before[2] + 1


@row
def one_element_in_all(rank, size):
    """PyTorch's error in one process; in several, its running variance is NaN."""
    ours, theirs = make_both(3)
    x = make_data((1, 3))[0]
    if size == 1:
        for module in (ours, theirs):
            with alone(), pytest.raises(ValueError, match="more than 1 value per channel"):
                module(x)
        return
    before = ours.running_var.clone()
    y = ours(x[:1 - rank])
    close(y, ours.bias.detach().expand(1 - rank, 3))
    close(ours.running_var, before * 0.9)


@row
def wrong_shapes(rank, size):
    for shape, options, error in (((4,), {}, ValueError), ((4, 0, 2), {}, ValueError), ((4, 2), {}, RuntimeError),
                                  ((4, 2), {"affine": False}, RuntimeError)):
        ours, theirs = make_both(3, **options, dtype=torch.float32)
        with pytest.raises(error, match="input: expected a shape"):
            ours(torch.zeros(shape))
        with alone(), pytest.raises(error):
            theirs(torch.zeros(shape))
    # Without parameters and statistics, any number of channels is right.
    options = dict(affine=False, track_running_stats=False)
    compare(rank, size, *make_both(7, **options))


@row
def other_devices(rank, size):
    """Like those of BatchNorm, unless processes exchange statistics."""
    ours = SyncBatchNorm(3, device="meta")
    x = torch.zeros(4, 3, 2, device="meta")
    assert ours.eval()(x).shape == x.shape
    ours.train()
    if size == 1:
        assert ours(x).shape == x.shape
    else:
        with pytest.raises(ValueError, match="expected a tensor on the CPU, got meta"):
            ours(x)


@row
def second_derivatives(rank, size):
    x, grad = (value.split(SIZES[size])[rank] for value in make_data())
    results = []
    for module in make_both(3) if size == 1 else make_both(3)[:1]:
        input = x.clone().requires_grad_()
        with alone() if size == 1 else contextlib.nullcontext():
            first, = torch.autograd.grad((module(input) ** 3 * grad).sum(), input, create_graph=True)
        if size > 1:
            with pytest.raises(RuntimeError, match="once_differentiable"):
                first.sum().backward()
            return
        (first * grad).sum().backward()
        results.append(input.grad)
    close(*results)


@row
def forward_mode(rank, size):
    x, grad = (value.split(SIZES[size])[rank] for value in make_data())
    results = []
    for module in make_both(3)[:3 - size]:
        with alone() if size == 1 else contextlib.nullcontext(), forward_ad.dual_level():
            dual = forward_ad.make_dual(x, grad)
            if size > 1:
                with pytest.raises(NotImplementedError, match="jvp"):
                    module(dual)
                return
            results.append(forward_ad.unpack_dual(module(dual)).tangent)
    close(*results)


@row
def functional_call(rank, size):
    ours, theirs = make_both(3)
    state = {name: value.detach().clone().requires_grad_(value.requires_grad)
             for name, value in (*ours.named_parameters(), *ours.named_buffers())}
    x, grad = make_data()
    with alone():
        expected = train(theirs, x, grad)[0]
    y = torch.func.functional_call(ours, state, x.split(SIZES[size])[rank])
    close(y, expected.split(SIZES[size])[rank])
    assert ours.num_batches_tracked == 0 and state["num_batches_tracked"] == 1


@row
def checkpoint(rank, size):
    """The running statistics are updated once more."""
    from torch.utils.checkpoint import checkpoint
    ours, theirs = make_both(3)
    x, grad = make_data()
    with alone():
        expected = train(lambda x: checkpoint(theirs, x, use_reentrant=False), x, grad)
    parts = [value.split(SIZES[size])[rank] for value in (x, grad)]
    for one, other in zip(train(lambda x: checkpoint(ours, x, use_reentrant=False), *parts), expected):
        close(one, other.split(SIZES[size])[rank])
    check_state(ours, theirs, size)
    assert ours.num_batches_tracked == 2


@row
def torch_compile(rank, size):
    ours, theirs = make_both(3)
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=size == 1)
    x, grad = make_data()
    with alone():
        expected = train(theirs, x, grad)
    parts = [value.split(SIZES[size])[rank] for value in (x, grad)]
    for one, other in zip(train(compiled, *parts), expected):
        close(one, other.split(SIZES[size])[rank])
    check_state(ours, theirs, size)


@row
def torch_fx(rank, size):
    """One node of the graph, as PyTorch's classes are."""
    ours, theirs = make_both(3)
    traced = torch.fx.symbolic_trace(nn.Sequential(ours, nn.ReLU()))
    other = torch.fx.symbolic_trace(nn.Sequential(theirs, nn.ReLU()))
    assert [(node.op, node.target) for node in traced.graph.nodes] == [
        (node.op, node.target) for node in other.graph.nodes]
    compare(rank, size, traced, other)
