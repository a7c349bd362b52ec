# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""The table of docs/python-torch.md: SyncBatchNorm beside PyTorch's classes, in one process and in two.

Each row of the table has a function of that name here, which every process runs. PyTorch's class has the whole batch in each
process, and bngrad's its part.
"""

import contextlib
import copy
import inspect
import io
import os
import pathlib
import pickle
import re
import sys
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import forward_ad

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from torch_processes import run_ranks

from bngrad.torch import SyncBatchNorm, convert_sync_batchnorm

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/python-torch.md"
SIZES = {1: [8], 2: [5, 3]}
HAS_BIAS_ARGUMENT = "bias" in inspect.signature(nn.SyncBatchNorm).parameters
ROWS = {}


def row(function):
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


# Arguments ----------------------------------------------------------------------------------------------------------


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


# Attributes that change after construction --------------------------------------------------------------------------


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


# State --------------------------------------------------------------------------------------------------------------


@row
def extra_repr(rank, size):
    for options in ({}, dict(eps=0.1, momentum=None, affine=False), dict(track_running_stats=False)):
        assert repr(SyncBatchNorm(3, **options)) == repr(nn.SyncBatchNorm(3, **options))


@row
def state_dict(rank, size):
    for options in ({}, dict(affine=False), dict(track_running_stats=False)):
        ours, theirs = make_both(3, **options)
        compare(rank, size, ours, theirs)
        own, other = ours.state_dict(), theirs.state_dict()
        assert list(own) == list(other) and own._metadata == other._metadata
        fresh = [each(3, **options, dtype=torch.float64) for each in (SyncBatchNorm, nn.SyncBatchNorm, nn.BatchNorm2d)]
        for module, state in zip(fresh, (other, own, own)):
            module.load_state_dict(state)
            assert all(torch.equal(one, each) for one, each in zip(module.state_dict().values(), state.values()))
    with pytest.raises(RuntimeError, match="size mismatch"):
        SyncBatchNorm(3).load_state_dict(SyncBatchNorm(4).state_dict())


@row
def state_dict_of_version_1(rank, size):
    """It has no number of batches."""
    states = []
    for each in (SyncBatchNorm, nn.SyncBatchNorm):
        module = fill(each(3))
        module.num_batches_tracked.fill_(5)
        state = fill(nn.BatchNorm2d(3)).state_dict()
        del state["num_batches_tracked"]
        with pytest.raises(RuntimeError, match="num_batches_tracked"):
            module.load_state_dict(state)
        state._metadata[""]["version"] = 1
        module.load_state_dict(state)
        states.append(module.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])


@row
def deepcopy(rank, size):
    ours, theirs = make_both(3)
    compare(rank, size, ours, theirs)
    duplicate = copy.deepcopy(ours)
    assert duplicate.weight is not ours.weight
    for module in (ours, duplicate):
        module.zero_grad()
    compare(rank, size, duplicate, theirs.zero_grad() or theirs, steps=1)
    assert duplicate.num_batches_tracked == 3 and ours.num_batches_tracked == 2


@row
def pickling(rank, size):
    ours, theirs = make_both(3)
    compare(rank, size, ours, theirs)
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    for module in (torch.load(file, weights_only=False), pickle.loads(pickle.dumps(ours))):
        assert type(module) is SyncBatchNorm and module.process_group is None
        assert all(torch.equal(one, other) for one, other in zip(module.state_dict().values(),
                                                                 ours.state_dict().values()))
    # A group is no data.
    outcomes = []
    for module in (ours, theirs):
        module.process_group = dist.group.WORLD
        try:
            outcomes.append(len(pickle.dumps(module)) > 0)
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


@row
def state_of_older_versions(rank, size):
    """`__setstate__` of a module that was pickled whole, before it had all of today's attributes."""
    ours, theirs = make_both(3)
    restored = []
    for module in (ours, theirs):
        state = dict(vars(module))
        for name in ("process_group", "_non_persistent_buffers_set", "_is_full_backward_hook", "_forward_pre_hooks",
                     "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                     "_load_state_dict_post_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs"):
            state.pop(name, None)
        older = type(module).__new__(type(module))
        older.__setstate__(state)
        assert list(older.state_dict()) == list(module.state_dict())
        older.process_group = None
        restored.append(older)
    compare(rank, size, *restored)


@row
def moves(rank, size):
    ours, theirs = make_both(3)
    for move in (lambda module: module.float(), lambda module: module.to(torch.float64),
                 lambda module: module.double().to("cpu"), lambda module: fill(module.to("meta").to_empty(device="cpu"))):
        ours, theirs = move(ours), move(theirs)
        ours.zero_grad(), theirs.zero_grad()
        for module in (ours, theirs):
            module.reset_running_stats()
        dtype = ours.weight.dtype
        compare(rank, size, ours, theirs, make_data(dtype=dtype), 1e-10 if dtype == torch.float64 else 1e-5)


@row
def hooks(rank, size):
    calls = []
    module = SyncBatchNorm(3, dtype=torch.float64)
    module.register_forward_pre_hook(lambda *_: calls.append("before"))
    module.register_forward_hook(lambda *_: calls.append("after"))
    module.register_full_backward_hook(lambda *_: calls.append("backward"))
    train(module, *(value.split(SIZES[size])[rank] for value in make_data()))
    assert calls == ["before", "after", "backward"]


# Inputs -------------------------------------------------------------------------------------------------------------


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


# Transformations ----------------------------------------------------------------------------------------------------


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


# Programs -----------------------------------------------------------------------------------------------------------


@row
def isinstance_(rank, size):
    module = SyncBatchNorm(3)
    assert isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, nn.SyncBatchNorm)


@row
def DistributedDataParallel(rank, size):
    x, grad = make_data()
    ours, theirs = make_both(3)
    model = nn.parallel.DistributedDataParallel(ours)
    with alone():
        expected = train(theirs, x, grad)
    parts = [value.split(SIZES[size])[rank] for value in (x, grad)]
    for one, other in zip(train(model, *parts), expected):
        close(one, other.split(SIZES[size])[rank])
    for one, other in zip(ours.parameters(), theirs.parameters()):
        close(one.grad * size, other.grad)


@row
def conversion(rank, size):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.SyncBatchNorm(3), nn.Sequential(nn.BatchNorm3d(3, affine=False)))
    other = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model), "group")
    result = SyncBatchNorm.convert_sync_batchnorm(model, "group")
    assert result is model and [str(each) for each in result.modules()] == [str(each) for each in other.modules()]
    assert all(each.process_group == "group" for each in result.modules() if isinstance(each, SyncBatchNorm))
    model.requires_grad_(False)
    fill(model)
    module, other = fill(nn.BatchNorm2d(3, dtype=torch.float64)), fill(nn.SyncBatchNorm(3, dtype=torch.float64))
    compare(rank, size, convert_sync_batchnorm(module), other)
    # A subclass that never trains.
    frozen = type("Frozen", (nn.BatchNorm2d,), {"train": lambda self, mode=True: nn.BatchNorm2d.train(self, False)})
    module, other = (fill(frozen(3, dtype=torch.float64)).train() for _ in range(2))
    compare(rank, size, convert_sync_batchnorm(module).train(), other)


@row
def lazy(rank, size):
    module = nn.LazyBatchNorm2d(dtype=torch.float64)
    with pytest.raises(ValueError, match="initialized"):
        convert_sync_batchnorm(module)
    with torch.no_grad():
        module(make_data()[0])
    module.reset_running_stats()
    module = fill(convert_sync_batchnorm(module))
    assert type(module) is SyncBatchNorm
    compare(rank, size, module, fill(nn.SyncBatchNorm(3, dtype=torch.float64)))


def run_row(rank, size, name):
    ROWS[name](rank, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ROWS)
def test_row(name, size):
    run_ranks(run_row, size, name)


def test_the_document_has_all_rows():
    section = DOCUMENT.read_text().split("### Comparison with PyTorch's classes")[1].split("\n## ")[0]
    titles = [re.sub(r"[`_]", " ", title).split() for title in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)]
    assert sorted(" ".join(title) for title in titles[1:]) == sorted(name.strip() for name in ROWS)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
