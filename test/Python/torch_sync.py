# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""SyncBatchNorm in processes of gloo, compared with one process."""

import copy
import gc
import os
import pickle
import sys
import time
import types
import weakref

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from torch_processes import run_ranks

from bngrad.torch import SyncBatchNorm, convert_sync_batchnorm

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def make_module(options, channels, dtype):
    module = SyncBatchNorm(channels, **options, dtype=dtype)
    with torch.no_grad():
        module.running_mean is None or module.running_mean.copy_(torch.linspace(-1, 1, channels))
        if module.affine:
            module.weight.copy_(torch.linspace(0.5, 1.5, channels))
            module.bias.copy_(torch.linspace(-0.3, 0.4, channels))
    return module


def make_data(sizes, shape, dtype, is_last):
    """Input and grad_output of all processes."""
    generator = torch.Generator().manual_seed(sum(sizes) + len(sizes))
    shape = (sum(sizes), *shape)
    number = torch.arange(shape[1]).view(-1, *[1] * (len(shape) - 2))
    data = [(torch.randn(shape, generator=generator, dtype=torch.float64) * (1 + 0.2 * number) + offset + number
            ).to(dtype) for offset in (0.3, -7)]
    return [tensor.to(memory_format=torch.channels_last) for tensor in data] if is_last else data


def run_module(rank, size, sizes, shape, dtype, options, is_last):
    module = make_module(options, shape[0], dtype if dtype != torch.bfloat16 else torch.float32)
    input, grad_output = (tensor.split(sizes)[rank].clone(memory_format=torch.preserve_format)
                          for tensor in make_data(sizes, shape, dtype, is_last))
    input.requires_grad_()
    output = module(input)
    output.backward(grad_output)
    if is_last and sizes[rank]:
        assert input.grad.is_contiguous(memory_format=torch.channels_last)
    parameters = [parameter.grad for parameter in module.parameters()]
    return [tensor.detach() for tensor in (output, input.grad, *parameters, *module.buffers())]


def expect(sizes, shape, dtype, options, is_last):
    """The same in one process, in f64; parameter gradients of each part."""
    module = make_module(options, shape[0], torch.float64)
    module.__class__ = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
    input, grad_output = (tensor.double() for tensor in make_data(sizes, shape, dtype, is_last))
    input.requires_grad_()
    output = module(input)
    output.backward(grad_output)
    dims = [0, *range(2, input.dim())]
    spread = lambda value: value.view(-1, *[1] * (input.dim() - 2))
    x = input.detach()
    normalized = (x - spread(x.mean(dims))) * spread((x.var(dims, correction=0) + module.eps).rsqrt())
    per_part = [[(part * other).sum(dims), part.sum(dims)] if module.affine else []
                for part, other in zip(grad_output.split(sizes), normalized.split(sizes))]
    return [[a, b, *c, *module.buffers()]
            for a, b, c in zip(output.detach().split(sizes), input.grad.split(sizes), per_part)]


SHARDS = {2: [[5, 3], [0, 8]], 3: [[1, 0, 6]], 4: [[3, 0, 2, 4], [1, 1, 1, 1]]}
CASES = [(sizes, (3, 4, 5), torch.float64, {}, False) for several in SHARDS.values() for sizes in several]
CASES += [
    ([5, 3], (3, 4, 5), torch.float32, {"momentum": None}, True),
    ([2, 0, 5], (3, 4, 5), torch.bfloat16, {}, True),
    ([4, 3], (7,), torch.float64, {"affine": False}, False),
    ([4, 3], (7, 2), torch.float32, {"track_running_stats": False, "eps": 0.1}, False),
]


@pytest.mark.parametrize("sizes, shape, dtype, options, is_last", CASES, ids=str)
def test_equals_one_process(sizes, shape, dtype, options, is_last):
    arguments = sizes, shape, dtype, options, is_last
    results = run_ranks(run_module, len(sizes), *arguments)
    for result, expected in zip(results, expect(*arguments)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected):
            scale = float(other.abs().max()) if other.numel() else 0
            torch.testing.assert_close(one.double(), other.double(), rtol=0, atol=TOLERANCE[dtype] * (1 + scale))


def run_far_from_zero(rank, size):
    """The variance is not that of squares, which cancel."""
    generator = torch.Generator().manual_seed(rank)
    input = 1e4 + torch.randn(1000, 2, generator=generator)
    return SyncBatchNorm(2)(input)


def test_large_means():
    parts = run_ranks(run_far_from_zero, 2)
    torch.testing.assert_close(torch.cat(parts).var(0), torch.ones(2), rtol=1e-2, atol=0)


def run_parallel(rank, size):
    torch.manual_seed(0)
    model = convert_sync_batchnorm(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3))).double()
    model = nn.parallel.DistributedDataParallel(model)
    data = torch.randn(8, 3, 9, 9, dtype=torch.float64).split(4)[rank]
    model(data).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


def test_distributed_data_parallel():
    results = run_ranks(run_parallel, 2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3)).double()
    model(torch.randn(8, 3, 9, 9, dtype=torch.float64)).square().mean().backward()
    for result in results:
        for one, parameter in zip(result, model.parameters()):
            torch.testing.assert_close(one, parameter.grad, rtol=1e-9, atol=1e-12)


def run_subgroup(rank, size):
    """Two groups of two."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    module = SyncBatchNorm(2, process_group=groups[rank // 2])
    input = torch.full((2, 2), float(rank), requires_grad=True)
    module(input)
    return module.running_mean


def test_process_group():
    means = run_ranks(run_subgroup, 4)
    assert [round(float(mean[0]) * 10, 4) for mean in means] == [0.5, 0.5, 2.5, 2.5]


def run_profiled(rank, size):
    module = SyncBatchNorm(3)
    sent = []
    all_reduce = dist.all_reduce
    dist.all_reduce = lambda tensor, **options: (sent.append(tensor.numel()), all_reduce(tensor, **options))
    input = torch.randn(4, 3, 5, requires_grad=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        module(input).sum().backward()
    return sent, sorted({event.key for event in profile.key_averages() if event.key.startswith("bngrad.")})


def test_one_all_reduce_and_ranges():
    for sent, names in run_ranks(run_profiled, 2):
        assert sent == [2 * 3 + 1]
        assert names == [f"bngrad.SyncBatchNorm.{part}"
                         for part in ("all_gather", "all_reduce", "elemt", "forward", "reduce")]


def run_lost(rank, size, is_in_forward, hangs):
    module, input = SyncBatchNorm(3), torch.randn(4, 3, requires_grad=True)
    if not is_in_forward:
        output = module(input)
    dist.barrier()
    if rank == 1:
        time.sleep(8 if hangs else 0)
        os._exit(0)
    begin = time.monotonic()
    with pytest.raises(RuntimeError):
        module(input) if is_in_forward else output.sum().backward()
    return time.monotonic() - begin


@pytest.mark.parametrize("is_in_forward, hangs", [(True, False), (False, False), (False, True)])
def test_lost_rank(is_in_forward, hangs):
    seconds = run_ranks(run_lost, 2, is_in_forward, hangs, timeout=3, lost=[1])[0]
    assert seconds < 6


def run_twice(rank, size):
    module, input = SyncBatchNorm(3), torch.randn(4, 3, requires_grad=True)
    grad, = torch.autograd.grad(module(input).pow(3).sum(), input, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_second_derivatives_are_an_error():
    run_ranks(run_twice, 2)


def test_without_a_group_it_is_a_batch_norm():
    torch.manual_seed(0)
    input = torch.randn(4, 3, 5, 5)
    module, other = SyncBatchNorm(3), nn.BatchNorm2d(3)
    for _ in range(2):
        assert torch.equal(module(input), other(input))
        assert torch.equal(module.running_var, other.running_var)
        module.eval(), other.eval()
    assert torch.equal(functional.batch_norm(input, None, None, training=True),
                       SyncBatchNorm(3, affine=False, track_running_stats=False)(input))


def run_infinite(rank, size):
    module = SyncBatchNorm(2)
    module.running_mean.fill_(float("inf"))
    module.running_var[0] = float("inf")
    module(torch.randn(3, 2, 4))
    return module.running_mean, module.running_var


def test_infinite_running_statistics_stay():
    for mean, variance in run_ranks(run_infinite, 2):
        assert mean.isposinf().all() and variance[0].isposinf() and variance[1].isfinite()


def test_errors():
    with pytest.raises(RuntimeError, match=r"expected a shape \(N, 3, ...\), got \(4, 2\)"):
        SyncBatchNorm(3)(torch.zeros(4, 2))
    with pytest.raises(ValueError, match="LazyBatchNorm1d at the module itself"):
        convert_sync_batchnorm(nn.LazyBatchNorm1d())


def test_conversion():
    shared = nn.BatchNorm2d(4, eps=0.1, momentum=None)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), shared, nn.Sequential(shared, nn.BatchNorm1d(2, affine=False)),
                          nn.SyncBatchNorm(5), nn.InstanceNorm2d(3))
    model[2].eval()
    parameters, state = list(model.parameters()), copy.deepcopy(model.state_dict())
    assert convert_sync_batchnorm(model) is model
    assert all(one is other for one, other in zip(model.parameters(), parameters))
    assert list(model.state_dict()) == list(state)
    assert type(model[1]) is type(model[3]) is type(model[2][1]) is SyncBatchNorm
    assert model[1] is model[2][0] and model[1].eps == 0.1 and model[1].momentum is None
    assert not model[2][1].training and model[2][1].weight is None
    assert type(model[4]) is nn.InstanceNorm2d
    assert type(convert_sync_batchnorm(nn.BatchNorm3d(2))) is SyncBatchNorm
    assert copy.deepcopy(model)[1].weight is not model[1].weight


class Leaky(nn.BatchNorm2d):
    """A batch norm with an activation, as in timm."""

    def __init__(self, channels):
        super().__init__(channels)
        self.activation = nn.PReLU()

    def forward(self, x):
        return self.activation(super().forward(x))


class Frozen(nn.BatchNorm2d):
    def forward(self, x):
        return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)


class Strict(nn.BatchNorm2d):
    """One that differs in its checks, not in its values, as in mmcv."""

    def _check_input_dim(self, input):
        pass


class Even(nn.BatchNorm2d):
    """One whose check calls that of its base."""

    def _check_input_dim(self, input):
        super()._check_input_dim(input)
        if input.size(0) % 2:
            raise ValueError("expected an even batch")


class Slotted(Even):
    __slots__ = ("tag",)


class Hiding(type(nn.Module)):
    def __getattribute__(cls, name):
        if name in ("__mro__", "__dict__"):
            raise AttributeError(name)
        return super().__getattribute__(name)


class Hidden(nn.BatchNorm2d, metaclass=Hiding):
    momentum = 0.25


class Derived(Leaky):
    pass


def is_unchanged(model, classes):
    return [type(module) for module in model.modules()] == classes


@pytest.mark.parametrize("other", [Leaky, Derived, Frozen])
def test_subclasses_with_another_forward_are_errors(other):
    """Before anything is converted."""
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.ReLU(), other(3)))
    classes = [type(module) for module in model.modules()]
    with pytest.raises(ValueError, match=rf"got {other.__name__} at 1\.1, which has its own forward; give a factory"):
        convert_sync_batchnorm(model)
    assert is_unchanged(model, classes)


def subclass(**attributes):
    return type("Own", (nn.BatchNorm2d,), attributes)


def test_overrides_that_may_run_another_forward_are_errors():
    patched = nn.BatchNorm2d(3)
    patched.forward = lambda x: x
    parametrized = nn.utils.parametrize.register_parametrization(nn.BatchNorm2d(3), "weight", nn.Softplus())
    compiled = nn.BatchNorm2d(3)
    compiled.compile(backend="eager")
    called = subclass(__call__=lambda self, x: x)(3)
    get = subclass(__getattribute__=lambda self, name: nn.Module.__getattribute__(self, name))(3)
    counting = subclass(_count_batch=lambda self: 0.5)(3)
    pickled = subclass(__reduce__=lambda self: (nn.BatchNorm2d, (3,)))(3)
    for module, name in ((patched, "forward"), (parametrized, "parametrizations"), (compiled, "_compiled_call_impl"),
                         (called, "__call__"), (get, "__getattribute__"), (counting, "_count_batch"),
                         (pickled, "__reduce__")):
        with pytest.raises(ValueError, match=f"which has its own {name}; give a factory"):
            convert_sync_batchnorm(module)


def test_classes_without_subclasses_are_errors():
    def refuse(cls, **_):
        raise TypeError("this class is final")

    final = subclass()
    final.__init_subclass__ = classmethod(refuse)
    with pytest.raises(ValueError, match="expected batch norms of classes that may have subclasses, got Own at 0; "
                       "give a factory"):
        convert_sync_batchnorm(nn.Sequential(final(3)))


class Overriding(nn.BatchNorm2d):
    """One that is always in evaluation and in f32, as frozen ones are, and reads old checkpoints."""

    def __init__(self, channels):
        super().__init__(channels, momentum=0.5)
        self.start = 7

    def train(self, mode=True):
        return super().train(mode and not getattr(self, "is_frozen", False))

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "seen":
            super().__setattr__("seen", value + 1)

    def __getattr__(self, name):
        return 5 if name == "missing" else super().__getattr__(name)

    def _apply(self, fn, recurse=True):
        return self

    def reset_running_stats(self):
        super().reset_running_stats()
        self.running_var.fill_(getattr(self, "start", 1))

    def reset_parameters(self):
        super().reset_parameters()
        self.weight.data.fill_(0.5)

    def _load_from_state_dict(self, state, prefix, *arguments):
        state[prefix + "weight"] = state.pop(prefix + "gamma")
        super()._load_from_state_dict(state, prefix, *arguments)

    momentum = property(lambda self: self.__dict__["factor"] / 2,
                        lambda self, value: self.__dict__.update(factor=value))

    def fuse(self):
        return "fused"


def check_overrides(module, x):
    """What `module` does, which must not depend on whether it is converted."""
    outcomes = [module(x).detach(), module.running_mean.clone(), module.running_var.clone(), module.missing]
    module.is_frozen, module.seen = True, 3
    module.train()
    outcomes += [module.training, module.seen, module.momentum, module.fuse(), module(x).detach()]
    module.half()
    outcomes.append(module.weight.dtype)
    module.load_state_dict({("gamma" if name == "weight" else name): value + 1
                            for name, value in module.state_dict().items()})
    outcomes += [module.weight.detach().clone(), module.running_mean.clone()]
    module.reset_parameters()
    return outcomes + [module.running_var.clone(), module.weight.detach().clone()]


def test_other_overrides_are_kept():
    """By copies and pickles as well."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, 2, 2) + torch.arange(3).view(3, 1, 1)
    expected = check_overrides(Overriding(3), x)
    converted = convert_sync_batchnorm(nn.Sequential(Overriding(3)))[0]
    copies = [copy.deepcopy(converted), pickle.loads(pickle.dumps(converted)), converted]
    assert len(expected) == 14 and not expected[4] and expected[9] is torch.float32
    for module in copies:
        assert isinstance(module, SyncBatchNorm) and isinstance(module, Overriding)
        for one, other in zip(check_overrides(module, x), expected, strict=True):
            assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_subclasses_of_pytorchs_synchronized_class_are_errors():
    """The replacement would be one, too, which DistributedDataParallel refuses on CPUs."""
    module = type("Own", (nn.SyncBatchNorm,), {})(3)
    with pytest.raises(ValueError, match="no subclass of PyTorch's SyncBatchNorm, .* got Own at 0; give a factory"):
        convert_sync_batchnorm(nn.Sequential(module))
    result = convert_sync_batchnorm(nn.Sequential(module), factories={nn.SyncBatchNorm: lambda norm, sync: sync})[0]
    assert type(result) is SyncBatchNorm and result.weight is module.weight


def test_factories_keep_activations():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 1), Derived(4), nn.BatchNorm2d(4))
    with torch.no_grad():
        model[1].running_mean.copy_(torch.linspace(-1, 1, 4))
        model[1].weight.copy_(torch.linspace(0.5, 2, 4))
    x = torch.randn(5, 3, 2, 2)
    expected = [copy.deepcopy(model).train(is_training)(x) for is_training in (True, False)]
    parameters = list(model.parameters())
    convert_sync_batchnorm(model, factories={Leaky: lambda norm, sync: nn.Sequential(sync, norm.activation)})
    assert [type(module) for module in model[1]] == [SyncBatchNorm, nn.PReLU] and type(model[2]) is SyncBatchNorm
    assert {id(each) for each in model.parameters()} == {id(each) for each in parameters}
    for is_training, other in zip((True, False), expected):
        assert torch.equal(copy.deepcopy(model).train(is_training)(x), other)


def test_conversion_again_sets_the_group():
    module = convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2)), "a group")
    first = module[0]
    assert convert_sync_batchnorm(module) is module and module[0] is first and first.process_group is None


def test_conversion_keeps_what_the_module_has():
    module = Strict(3)
    module.qconfig, module.note = "qconfig", ["a note"]
    module.register_buffer("more", torch.ones(2), persistent=False)
    module.register_module("child", nn.BatchNorm1d(2))
    calls = []
    module.register_forward_hook(lambda *_: calls.append("after"))
    module.register_forward_pre_hook(lambda *_: calls.append("before"))
    module.weight.requires_grad_(False)
    result = convert_sync_batchnorm(nn.Sequential(module))[0]
    assert isinstance(result, SyncBatchNorm) and type(result.child) is SyncBatchNorm and type(module.child) is nn.BatchNorm1d
    assert result.qconfig == "qconfig" and result.note is module.note and result.more is module.more
    assert "more" not in result.state_dict() and not result.weight.requires_grad
    result(torch.randn(2, 3, 4, 4))
    assert calls == ["before", "after"]


def test_handles_of_hooks_act_on_the_converted_module():
    module, calls = nn.BatchNorm2d(3), []
    module.bound = types.MethodType(lambda self: self, module)

    def note(name):
        return lambda *_, **__: calls.append(name)

    handles = [module.register_forward_pre_hook(note("before"), with_kwargs=True),
               module.register_forward_hook(note("after"), always_call=True),
               module.register_full_backward_pre_hook(note("backward before")),
               module.register_full_backward_hook(note("backward")),
               module.register_state_dict_pre_hook(note("save before")),
               module.register_state_dict_post_hook(note("save")),
               module.register_load_state_dict_pre_hook(lambda self, *_: calls.append(self)),
               module.register_load_state_dict_post_hook(note("load"))]
    result = convert_sync_batchnorm(nn.Sequential(module))[0]
    del module
    assert result.bound() is result

    def use():
        result(torch.randn(2, 3, 4, 4, requires_grad=True)).sum().backward()
        result.load_state_dict(result.state_dict())

    use()
    expected = ["before", "after", "backward before", "backward", "save before", "save", result, "load"]
    assert all(one is other for one, other in zip(calls, expected, strict=True))
    result.register_forward_hook(note("new"))
    for handle in handles:
        handle.remove()
    calls.clear()
    use()
    assert calls == ["new"]


def test_checks_of_inputs_are_kept():
    """By copies and pickles as well, with the attributes that somebody has set."""
    module = Even(3).double()
    with torch.no_grad():
        module.weight.copy_(torch.tensor([0.5, 1, 2]))
    module.note = ["a note"]
    expected = copy.deepcopy(module)
    converted = convert_sync_batchnorm(nn.Sequential(module))
    copies = [converted, copy.copy(converted), copy.deepcopy(converted), pickle.loads(pickle.dumps(converted))]
    x = torch.randn(4, 3, 2, 2, dtype=torch.double)
    y = expected(x)
    for result, in copies:
        assert isinstance(result, SyncBatchNorm) and isinstance(result, Even) and result.note == ["a note"]
        assert torch.equal(result.train()(x), y) and repr(result).startswith("SyncBatchNorm(3, ")
        with pytest.raises(ValueError, match="expected an even batch"):
            result(x[1:])
        with pytest.raises(ValueError, match="expected 4D input"):
            result(x[0])
        assert list(result.state_dict()) == list(expected.state_dict())
        assert convert_sync_batchnorm(result) is result


def test_attributes_outside_of_dict_are_kept():
    module = Slotted(3)
    module.tag = "a tag"
    assert convert_sync_batchnorm(module).tag == "a tag"


def test_a_metaclass_that_hides_attributes():
    module = Hidden(3)
    result = convert_sync_batchnorm(nn.Sequential(module))[0]
    assert isinstance(result, SyncBatchNorm) and result.momentum == 0.1 and result.weight is module.weight


def test_conversion_keeps_no_class_alive():
    def convert():
        kind = type("Local", (nn.BatchNorm1d,), {"extra_repr": lambda self: ""})
        first, second = (convert_sync_batchnorm(kind(2)) for _ in range(2))
        assert type(first) is type(second) and isinstance(first, kind)
        return weakref.ref(kind)

    classes = [convert() for _ in range(3)]
    gc.collect()
    assert [each() for each in classes] == [None] * 3


def test_an_object_that_hides_its_attributes():
    class Proxy:
        __slots__ = ()
        __class__ = property(lambda self: nn.BatchNorm2d)

        def named_modules(self):
            return [("", self)]

    with pytest.raises(ValueError, match="got Proxy at the module itself, which has its own __dict__"):
        convert_sync_batchnorm(Proxy())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
