# RUN: %build_cudart
# RUN: %emulated_python -m pytest -q %s
# The ready kernels alone.
# RUN: env BNGRAD_WITHOUT_COMPILER=1 LD_LIBRARY_PATH=%bngrad_obj_root/lib %emulated_python -m pytest -q %s -k "values or cudnn or training or streams"
# REQUIRES: torch, python-compiler
"""enable() for CUDA tensors, on the emulator: every op of aten that is replaced, streams, memory and graphs."""

import functools
import gc
import itertools
import os
import subprocess
import sys
import weakref

import pytest
import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._inductor import config
from torch._inductor.decomposition import select_decomp_table

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import emulated_cuda
import torch_calls
import torch_reference as reference
import torch_relu_ops
from emulated_cuda import to_cpu, to_cuda

import bngrad.torch

aten = torch.ops.aten
override, devices_of_library = (sys.modules["bngrad.torch." + each] for each in ("_override", "_devices"))
REPLACED = [kernel.op.removeprefix("aten::") for (_, device), each in override._passes.items() if device == "cuda"
            for kernel in (*each.originals, *each.python_kernels)]
# Kernels for CPUs compute in place of PyTorch's own.
enabled = functools.partial(bngrad.torch.enabled, devices=["cuda"])
# Ready kernels have no f64.
WITHOUT_COMPILER = os.environ.get("BNGRAD_WITHOUT_COMPILER") == "1"
if WITHOUT_COMPILER:
    os.environ["BNGRAD_COMPILER"] = ""
CONFIGURATIONS = 200 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 24


@pytest.fixture
def calls(monkeypatch):
    return torch_calls.record(monkeypatch, *REPLACED)


def move(arguments):
    return [to_cuda(each) for each in arguments]


def accumulator(data):
    return torch.float64 if data.dtype == torch.float64 else torch.float32


# Values -----------------------------------------------------------------------


def test_values_of_gradients(calls):
    for seed in range(CONFIGURATIONS):
        call, expected = reference.make_backward(seed)
        if WITHOUT_COMPILER and call[0].dtype == torch.float64:
            continue
        with enabled():
            results = aten.native_batch_norm_backward(*move(call))
        assert [each is not None for each in results] == call[-1]
        assert results[0] is None or results[0].stride() == torch.empty_like(call[1]).stride()
        expected.check_gradients(*map(to_cpu, results))
    assert not calls


def check_forward(call, results, running, parameter_type):
    """Compares the results of a forward pass on a GPU, and the running statistics after it."""
    data, weight, bias, mean, variance, is_training, momentum, epsilon = call
    output, *statistics = map(to_cpu, results)
    statistics_of = {"running": (mean, variance), "momentum": momentum} if is_training else {
        "mean": mean, "variance": variance}
    make = lambda dtype: reference.ExpectedForward(data, weight, bias, epsilon=epsilon, parameter_type=dtype,
                                                   **statistics_of)
    make(parameter_type).check(output=output)
    if not is_training:
        torch.testing.assert_close(statistics, [mean.to(parameter_type), (
            variance.double() + epsilon).rsqrt().to(parameter_type)], rtol=1e-6, atol=0)
        return
    make(parameter_type).check(**dict(zip(("mean", "inv_std"), statistics)))
    if mean is not None:
        make(mean.dtype).check(running_mean=to_cpu(running[0]), running_variance=to_cpu(running[1]))


def test_values_of_forward_passes(calls):
    """Statistics have the accumulator's type; in evaluation, they are those that were given."""
    for seed in range(CONFIGURATIONS):
        call = reference.make_forward(seed)
        if WITHOUT_COMPILER and call[0].dtype == torch.float64:
            continue
        moved = move(call)
        with enabled():
            results = aten.native_batch_norm(*moved)
        assert results[0].stride() == torch.empty_like(call[0]).stride()
        check_forward(call, results, moved[3:5], accumulator(call[0]))
    assert not calls


VARIANTS = {
    "native_batch_norm.out": lambda c, out: aten.native_batch_norm.out(*c, **out),
    "_native_batch_norm_legit": lambda c, _: aten._native_batch_norm_legit(*c),
    "_native_batch_norm_legit.out": lambda c, out: aten._native_batch_norm_legit.out(*c, **out),
    "_native_batch_norm_legit.no_stats": lambda c, _: aten._native_batch_norm_legit.no_stats(*c[:3], *c[5:]),
    "_native_batch_norm_legit.no_stats_out": lambda c, out: aten._native_batch_norm_legit.no_stats_out(
        *c[:3], *c[5:], **out),
    "_batch_norm_with_update": lambda c, _: aten._batch_norm_with_update(*c[:5], *c[6:])[:3],
    "_batch_norm_with_update.out": lambda c, out: aten._batch_norm_with_update.out(
        *c[:5], *c[6:], **out, reserve=torch.empty(0, dtype=torch.uint8, device="cuda"))[:3],
}


def choose_call(has_running, number):
    seeds = itertools.count(1000 * number)
    return next(call for call in map(lambda seed: reference.make_forward(seed, True), seeds)
                if (call[3] is not None) == has_running)


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name, calls):
    for number in range(3):
        call = choose_call("no_stats" not in name, number)
        moved, statistics = move(call), accumulator(call[0])
        out = {"out": torch.empty_like(moved[0]),
               "save_mean": torch.empty(call[0].shape[1], dtype=statistics, device="cuda"),
               "save_invstd": torch.empty(call[0].shape[1], dtype=statistics, device="cuda")}
        with enabled():
            results = VARIANTS[name](moved, out)
        check_forward(call, results, moved[3:5], statistics)
    assert not calls


def test_statistics_only(calls):
    for number in range(4):
        call = choose_call(True, number)
        moved = move(call)
        with enabled():
            results = aten.batch_norm_update_stats(moved[0], *moved[3:5], call[6])
        make = lambda dtype: reference.ExpectedForward(call[0], running=call[3:5], momentum=call[6], epsilon=1,
                                                       parameter_type=dtype)
        make(accumulator(call[0])).check(**dict(zip(("mean", "variance"), map(to_cpu, results))))
        make(call[3].dtype).check(running_mean=to_cpu(moved[3]), running_variance=to_cpu(moved[4]))
    assert not calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "sliced"])
def test_cudnn(dtype, layout, calls):
    """The reserve space is empty, and is not read."""
    generator = torch.Generator().manual_seed(3)
    shape = (4, 5, 6, 7)
    data, grad_output = (reference.lay_out(reference.make_data(generator, shape, dtype, offset=offset), layout, generator)
                         for offset in (0.3, -0.7))
    mean, variance, scale = reference.make_parameters(generator, shape[1:2], torch.float32)
    for is_training in (True, False):
        call = (data, scale, mean.flip(0), mean, variance, is_training, 0.3, 1e-5)
        moved = move(call)
        with enabled():
            *results, reserve = aten.cudnn_batch_norm(*moved)
        assert (reserve.dtype, reserve.shape) == (torch.uint8, (0,)) and reserve.is_cuda
        like = torch.empty(shape).to(memory_format=torch.channels_last if layout == "channels_last" else
                                     torch.contiguous_format)
        assert results[0].stride() == like.stride()
        if is_training:
            check_forward(call, results, moved[3:5], torch.float32)
        else:
            reference.check_forward(call, [to_cpu(each) for each in results], moved[3:5])
    mean, inv_std = mean + 0.5, variance
    with enabled():
        gradients = aten.cudnn_batch_norm_backward(
            *move((data, grad_output, scale, None, None, mean, inv_std)), 1e-5,
            torch.empty(77, dtype=torch.uint8, device="cuda"))
    assert gradients[0].stride() == like.stride()
    reference.Expected(grad_output, data, mean, scale=scale, inv_std=inv_std).check_gradients(*map(to_cpu, gradients))
    assert not calls


# Training ---------------------------------------------------------------------


def make_model(dtype, **options):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, **options), nn.ReLU(), nn.Conv2d(8, 5, 3),
                         nn.BatchNorm2d(5, **options)).to(dtype)


@pytest.mark.parametrize("momentum", [0.2, None])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_training(momentum, memory_format, calls):
    """Steps of SGD and an evaluation, beside f64 on a CPU."""
    exact = make_model(torch.float64, momentum=momentum)
    model = make_model(torch.float32, momentum=momentum).to("cuda", memory_format=memory_format)
    optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (exact, model)]
    for step in range(4):
        x = torch.randn(6, 3, 9, 9, generator=torch.Generator().manual_seed(step))
        target = torch.randn(6, 5, 5, 5, generator=torch.Generator().manual_seed(step + 100))
        with enabled():
            for each, data, optimizer in zip((exact, model), (x.double(), x.to("cuda", memory_format=memory_format)),
                                             optimizers):
                loss = (each(data) - target.to(data.device)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
    for one, other in zip((*model.parameters(), *model.buffers()), (*exact.parameters(), *exact.buffers())):
        torch.testing.assert_close(to_cpu(one).double(), other.double(), rtol=1e-4, atol=1e-5)
    with bngrad.torch.enabled(), torch.no_grad():
        torch.testing.assert_close(to_cpu(model.eval()(x.to("cuda"))).double(), exact.eval()(x.double()), rtol=1e-4,
                                   atol=1e-4)
    assert not calls


def test_autocast(calls):
    """Data in bf16, parameters and statistics in f32."""
    model = make_model(torch.float32).cuda().to(memory_format=torch.channels_last)
    results = []
    for is_enabled in (False, True):
        with enabled() if is_enabled else torch.enable_grad():
            x = torch.randn(4, 3, 9, 9, generator=torch.Generator().manual_seed(1)).to(
                "cuda", memory_format=torch.channels_last)
            with torch.autocast("cuda", torch.bfloat16):
                y = model(x)
            y.float().pow(3).mean().backward()
        results.append([to_cpu(y), *(to_cpu(each.grad) for each in model.parameters())])
        assert y.dtype == torch.bfloat16
        model.zero_grad()
    torch.testing.assert_close(*results, rtol=5e-2, atol=5e-2)
    assert not calls


def test_derivatives():
    """First and second ones, of the modules and of the ops of bngrad."""
    module = nn.BatchNorm1d(2).double().cuda()
    x = torch.randn(3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).cuda().requires_grad_()
    scale = torch.tensor([0.5, 2.0], dtype=torch.float64).cuda().requires_grad_()
    with enabled():
        assert torch.autograd.gradcheck(module, (x,))
        assert torch.autograd.gradgradcheck(module, (x,))
    train = lambda x, scale: torch.ops.bngrad.batch_norm_training(x, scale)[0]
    assert torch.autograd.gradcheck(train, (x, scale))
    assert torch.autograd.gradgradcheck(train, (x, scale))


def compile_without_triton(model, graphs):
    """torch.compile with inductor's decompositions and passes on the joint graph, whose nodes PyTorch runs."""

    def partition(graph, inputs, **options):
        if config.joint_custom_pre_pass is not None:
            config.joint_custom_pre_pass(graph.graph)
        return min_cut_rematerialization_partition(graph, inputs, **options)

    def keep(graph, _):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return make_boxed_func(graph.forward)

    return torch.compile(model, backend=aot_autograd(
        fw_compiler=keep, bw_compiler=keep, partition_fn=partition, decompositions=select_decomp_table()))


@pytest.mark.parametrize("devices", [["cuda"], ["cpu"]])
def test_compiled_graphs(devices, calls):
    """Batch norms and their gradients stay whole, with the ReLUs and the residual around them within."""

    class Model(nn.Module):

        def __init__(self):
            super().__init__()
            self.convolution, self.first, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.BatchNorm2d(6)

        def forward(self, x):
            y = torch.relu(self.first(self.convolution(x)))
            return torch.relu(self.norm(y) + y)

    torch.manual_seed(0)
    torch._dynamo.reset()
    graphs, model, exact = [], Model().cuda(), Model().double()
    exact.load_state_dict(model.state_dict())
    x = torch.randn(4, 3, 9, 9)
    with bngrad.torch.enabled(compile=True, devices=devices):
        compile_without_triton(model, graphs)(x.cuda()).pow(2).mean().backward()
    exact(x.double()).pow(2).mean().backward()
    for one, other in zip(model.parameters(), exact.parameters()):
        torch.testing.assert_close(to_cpu(one.grad).double(), other.grad, rtol=1e-4, atol=1e-6)
    for one, other in zip(model.buffers(), exact.buffers()):
        torch.testing.assert_close(to_cpu(one).double(), other.double(), rtol=1e-5, atol=1e-6)
    forward, backward = graphs
    is_ours = devices == ["cuda"]
    assert (forward.count("bngrad._batch_norm_training_relu.default"),
            backward.count("bngrad._batch_norm_backward_relu.default")) == ((2, 2) if is_ours else (0, 0))
    # Nothing else reads or writes the data.
    assert any("relu.default" in target for target in forward if "bngrad" not in target) != is_ours
    assert ("aten.where.self" in backward) != is_ours
    assert not calls


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", reference.DTYPES, ids=str)
def test_ops_with_a_relu(dtype, memory_format):
    for has_residual in (False, True):
        torch_relu_ops.check_ops(dtype, memory_format, has_residual, to_cuda, to_cpu)


# SyncBatchNorm ----------------------------------------------------------------


def test_synced_ops(calls):
    """Two shards of a batch, as torch.nn.SyncBatchNorm computes them, beside the whole batch."""
    generator = torch.Generator().manual_seed(4)
    shape = (7, 5, 3, 4)
    for dtype in (torch.float32, torch.bfloat16):
        data, grad_output = (reference.make_data(generator, shape, dtype, offset=offset) for offset in (20, -0.7))
        running_mean, running_variance, weight = reference.make_parameters(generator, shape[1:2], torch.float32)
        bias = running_mean.flip(0)
        shards, grads = [each.cuda() for each in data.split([3, 4])], [each.cuda() for each in grad_output.split([3, 4])]
        running = [running_mean.cuda(), running_variance.cuda()]
        with enabled():
            means, inv_stds = zip(*(torch.batch_norm_stats(each, 1e-5) for each in shards))
            counts = torch.tensor([each.numel() / shape[1] for each in shards]).cuda()
            mean, inv_std = torch.batch_norm_gather_stats_with_counts(
                shards[0], torch.stack(means), torch.stack(inv_stds), *running, 0.1, 1e-5, counts)
            output = [torch.batch_norm_elemt(each, weight.cuda(), bias.cuda(), mean, inv_std, 1e-5) for each in shards]
            parts = [torch.batch_norm_backward_reduce(*each, mean, inv_std, weight.cuda(), True, True, True)
                     for each in zip(grads, shards)]
            sum_dy, sum_dy_xmu, grad_weight, grad_bias = (sum(each) for each in zip(*parts))
            grad_input = [torch.batch_norm_backward_elemt(*each, mean, inv_std, weight.cuda(), sum_dy, sum_dy_xmu,
                                                          counts.int()) for each in zip(grads, shards)]
        expected = reference.ExpectedForward(data, weight, bias, mean=to_cpu(mean), inv_std=to_cpu(inv_std),
                                             parameter_type=torch.float32)
        expected.check(output=torch.cat([to_cpu(each) for each in output]))
        moments = reference.ExpectedForward(data, epsilon=1e-5, parameter_type=torch.float32)
        # PyTorch joins the shards in f32, without compensation.
        for result, name in ((mean, "mean"), (inv_std, "inv_std")):
            torch.testing.assert_close(to_cpu(result).double(), torch.from_numpy(
                moments.results[name][0].astype("float64")), rtol=1e-5, atol=0)
        exact = reference.Expected(grad_output, data, to_cpu(mean), scale=weight, inv_std=to_cpu(inv_std))
        exact.check_gradients(torch.cat([to_cpu(each) for each in grad_input]), to_cpu(grad_weight), to_cpu(grad_bias))
    assert {len(call) for call in calls} == set()


def test_parameters_of_16_bits(calls):
    """A model in half(), whose statistics are f32: weights are converted, and gradients have their type."""
    data = torch.randn(6, 3, 8, generator=torch.Generator().manual_seed(0)).half()
    weight = torch.tensor([0.5, 1, 2]).half()
    with enabled():
        mean, inv_std = torch.batch_norm_stats(data.cuda(), 1e-5)
        output = torch.batch_norm_elemt(data.cuda(), weight.cuda(), weight.cuda(), mean, inv_std, 1e-5)
        sums = torch.batch_norm_backward_reduce(data.cuda(), data.cuda(), mean, inv_std, weight.cuda(), True, True, True)
        assert sums[2].dtype == sums[3].dtype == torch.float16 and sums[0].dtype == torch.float32
        torch.testing.assert_close(to_cpu(output), nn.functional.batch_norm(data.double(), None, None, weight.double(),
                                                                            weight.double(), True).half(),
                                   rtol=2e-3, atol=2e-3)
        gradients = aten.native_batch_norm_backward(
            output, *move((data, weight, None, None)), mean, inv_std, True, 1e-5, [True] * 3)
    assert not calls
    exact = reference.Expected(to_cpu(output), data, to_cpu(mean), scale=weight, inv_std=to_cpu(inv_std))
    exact.parameter_type = torch.float16
    exact.check_gradients(*map(to_cpu, gradients))


# What a framework asks of a kernel ----------------------------------------------


def make_step(memory_format=torch.contiguous_format):
    x = torch.randn(4, 6, 8, 8, generator=torch.Generator().manual_seed(2)).to("cuda", memory_format=memory_format)
    weight, bias = torch.ones(6, device="cuda"), torch.zeros(6, device="cuda")
    running = torch.zeros(6, device="cuda"), torch.ones(6, device="cuda")

    def run():
        output, mean, inv_std = aten.native_batch_norm(x, weight, bias, *running, True, 0.1, 1e-5)
        return output, *aten.native_batch_norm_backward(output, x, weight, *running, mean, inv_std, True, 1e-5,
                                                        [True] * 3)

    return run


def test_no_call_waits_or_keeps_memory():
    run = make_step()
    with enabled():
        run()
        before, waits = torch.cuda.memory_allocated(), emulated_cuda.count_waits()
        reserved = torch.cuda.memory_reserved()
        for _ in range(5):
            run()
        assert emulated_cuda.count_waits() == waits
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (before, reserved)


def test_streams():
    """A call works in PyTorch's current stream, with workspaces of that stream."""
    run = make_step()
    with enabled():
        expected = [to_cpu(each) for each in run()]
        torch.cuda.synchronize()
        streams = [torch.cuda.Stream() for _ in range(3)]
        results = []
        for stream in streams * 2:
            with torch.cuda.stream(stream):
                results.append((stream, run()))
    for stream, each in results:
        with torch.cuda.stream(stream):
            assert all(torch.equal(to_cpu(one), other) for one, other in zip(each, expected))


def test_capture():
    """Into a graph of CUDA, after a call outside of it."""
    run = make_step()
    with enabled():
        expected = [to_cpu(each) for each in run()]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = run()
        graph.replay()
    assert all(torch.equal(to_cpu(one), other) for one, other in zip(results, expected))


def test_deterministic():
    run = make_step(torch.channels_last)
    torch.use_deterministic_algorithms(True)
    try:
        with enabled():
            first, second = ([to_cpu(each) for each in run()] for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(*pair) for pair in zip(first, second))


def test_arguments_are_freed():
    with enabled():
        call = move(choose_call(True, 0))
        kept = [weakref.ref(each.untyped_storage()) for each in call[:5] if isinstance(each, torch.Tensor)]
        for _ in range(2):
            results = aten.native_batch_norm(*call)
            aten.native_batch_norm_backward(results[0], *call[:2], None, None, *results[1:], True, 1e-5, [True] * 3)
        del call, results
        gc.collect()
        assert all(each() is None for each in kept)


# What is replaced ---------------------------------------------------------------


def is_replaced(key):
    return "Override.cpp" in torch._C._dispatch_dump_table("aten::native_batch_norm").split(f"{key}:")[1].split("\n")[0]


def test_devices():
    for devices in (["cpu"], ["cuda"], ["cpu", "cuda"], []):
        with bngrad.torch.enabled(devices=devices):
            assert (is_replaced("CPU"), is_replaced("CUDA")) == ("cpu" in devices, "cuda" in devices)
    assert not is_replaced("CPU") and not is_replaced("CUDA")
    for wrong in ("cuda", ["xpu"], ["cpu", "cuda:0"]):
        with pytest.raises(ValueError, match="devices: expected a collection of"):
            bngrad.torch.enable(devices=wrong)


def test_python_kernels_are_removed():
    dump = lambda: torch._C._dispatch_dump("aten::batch_norm_stats")
    before = dump()
    with enabled():
        assert dump() != before
        with enabled(forward=False):
            pass
        assert dump() != before
    assert dump() == before


def test_what_is_not_covered_goes_to_pytorch(calls):
    ones = torch.ones(3, device="cuda")
    x = torch.randn(4, 3, 5).cuda()
    empty = torch.empty(0, 3, 5, device="cuda")
    cases = [
        lambda: aten.native_batch_norm(empty, ones, ones, ones, ones, False, 0.1, 1e-5),
        lambda: aten.native_batch_norm(x, ones, ones, None, None, True, 0.1, 0.0),
        lambda: aten.native_batch_norm.out(x, ones, ones, ones, ones, False, 0.1, 1e-5, out=torch.empty_like(x),
                                           save_mean=torch.empty_like(ones), save_invstd=torch.empty_like(ones)),
        lambda: torch.batch_norm_stats(empty, 1e-5),
        lambda: torch.batch_norm_stats(x, 0.0),
        lambda: torch.batch_norm_elemt(x, None, None, ones[:2], ones, 1e-5),
    ]
    for number, function in enumerate(cases):
        with enabled():
            try:
                function()
            except (RuntimeError, NotImplementedError):
                pass  # PyTorch refuses it.
        assert len(calls) == number + 1


def test_a_gradient_of_cudnn_that_is_not_covered():
    """cuDNN might read the reserve space, which is empty after a forward pass by bngrad."""
    x, ones = torch.randn(4, 3, *[1] * 14, 2), torch.ones(3)  # the C library takes 16 dims
    mean, inv_std = x.mean((0, *range(2, 17))), x.var((0, *range(2, 17)), correction=0).rsqrt()
    with enabled():
        results = aten.cudnn_batch_norm_backward(*move((x, x, ones, None, None, mean, inv_std)), 1e-5,
                                                 torch.empty(0, dtype=torch.uint8, device="cuda"))
    expected = aten.native_batch_norm_backward(x, x, ones, None, None, mean, inv_std, True, 1e-5, [True] * 3)
    for result, value in zip(results, expected):
        torch.testing.assert_close(to_cpu(result), value)


@pytest.fixture
def refused(monkeypatch):
    """A device on which the C library cannot compute."""

    def refuse(number, has_relu):
        override._library_handle.bngradTorchSetError(b"expected a driver")
        return 1

    monkeypatch.setattr(devices_of_library, "_can_compute", {})
    monkeypatch.setattr(override._library_handle, "bngradTorchVerifyDevice", refuse)
    return functools.partial(pytest.warns, RuntimeWarning, match="on cuda:0: expected a driver")


def test_a_device_without_kernels(calls, refused):
    """PyTorch computes, and one warning says why."""
    ones = torch.ones(3, device="cuda")
    with enabled(), refused() as warned:
        for _ in range(2):
            aten.native_batch_norm(torch.randn(4, 3, 5).cuda(), ones, ones, None, None, True, 0.1, 0.0)
    with enabled(), pytest.raises(NotImplementedError):  # PyTorch's kernel, which the emulator has not
        torch.batch_norm_stats(torch.randn(4, 3, 5).cuda(), 1e-5)
    assert len(warned) == 1 and len(calls) == 3


def test_a_compiled_graph_for_a_device_without_kernels(refused):
    torch._dynamo.reset()
    graphs = []
    with enabled(compile=True), refused():
        compile_without_triton(nn.BatchNorm1d(3).cuda(), graphs)(torch.randn(4, 3, 5).cuda()).sum().backward()
    assert len(graphs) == 2 and not any("bngrad" in node for graph in graphs for node in graph)


def test_a_device_without_a_compiler():
    """It has no ready kernels."""
    program = """if True:
        import warnings

        import emulated_cuda
        import torch

        import bngrad.torch

        x, ones = torch.randn(4, 3, 5).cuda(), torch.ones(3).cuda()
        with bngrad.torch.enabled(), warnings.catch_warnings(record=True) as caught:
            for _ in range(2):
                torch.ops.aten.native_batch_norm(x, ones, ones, None, None, True, 0.1, 1e-5)
            try:
                torch.batch_norm_stats(x, 1e-5)
            except NotImplementedError:  # PyTorch's kernel, which the emulator has not
                print([str(each.message) for each in caught if each.category is RuntimeWarning])
        """
    inputs = os.path.join(os.path.dirname(__file__), "Inputs")
    path = os.pathsep.join([inputs, os.environ["PYTHONPATH"]])
    environment = os.environ | {"BNGRAD_COMPILER": "", "BNGRAD_CACHE_DIR": "", "LD_LIBRARY_PATH": "", "PYTHONPATH": path}
    output = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert output.stdout.count("on cuda:0: expected a ready kernel or libBNGradCompiler.so") == 1


def test_a_build_of_pytorch_without_cuda(monkeypatch):
    """Such as one for ROCm, whose devices are called cuda as well."""
    monkeypatch.setattr(override, "_passes", {key: each for key, each in override._passes.items() if "cuda" not in key})
    with bngrad.torch.enabled(compile=True):
        assert override._inductor._states.keys() == {"cpu"}


def test_tensors_on_different_devices():
    x, ones = torch.randn(4, 3, 5).cuda(), torch.ones(3)
    with pytest.raises(RuntimeError, match="mean: expected the device of input, cuda:0, got cpu"):
        torch.ops.bngrad.batch_norm_inference(x, ones, variance=ones)


def test_the_gradient_on_a_cpu_does_not_change():
    call, expected = reference.make_backward(5)
    with enabled():
        expected.check_gradients(*aten.native_batch_norm_backward(*call))
