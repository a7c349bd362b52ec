"""Rows of torch_sync_table.py: the state of modules, copies, and programs around them."""

import copy
import io
import pickle

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch_sync_rows import SIZES, alone, close, compare, fill, make_both, make_data, row, train

from bngrad.torch import SyncBatchNorm, convert_sync_batchnorm


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
