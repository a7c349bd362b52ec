# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""enable(), disable() and enabled(): which gradients change, and to what."""

import gc
import os
import re
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls
import torch_reference as reference

import bngrad.torch

native = torch.ops.aten.native_batch_norm_backward.default
CONFIGURATIONS = 1000 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 300


@pytest.fixture(autouse=True)
def is_as_before():
    yield
    with pytest.raises(RuntimeError, match="without enable"):
        bngrad.torch.disable()


@pytest.fixture
def calls(monkeypatch):
    return torch_calls.record(monkeypatch, "native_batch_norm_backward")


def test_random_configurations(calls):
    with bngrad.torch.enabled():
        for seed in range(CONFIGURATIONS):
            arguments, expected = reference.make_backward(seed)
            results = native(*arguments)
            wanted = arguments[-1]
            assert [result is not None for result in results] == wanted
            expected.check_gradients(*results)
    assert not calls


def test_the_op_with_a_last_argument(monkeypatch):
    """aten::batch_norm_backward, whose weight is not optional, computes the same bits."""
    calls = torch_calls.record(monkeypatch, "batch_norm_backward")
    space = torch.empty(0, dtype=torch.uint8)
    with bngrad.torch.enabled():
        for seed in range(60):
            arguments, _ = reference.make_backward(seed)
            if arguments[2] is None:
                continue
            for result, other in zip(torch.ops.aten.batch_norm_backward(*arguments, space), native(*arguments)):
                assert result is other is None or torch.equal(result, other)
    assert not calls


def test_results_look_like_those_of_pytorch():
    """Types, shapes and strides; PyTorch divides by zero for empty data."""
    for seed in range(100):
        arguments, _ = reference.make_backward(seed)
        if arguments[0].numel() == 0:
            continue
        expected = native(*arguments)
        with bngrad.torch.enabled():
            results = native(*arguments)
        for result, other in zip(results, expected):
            if other is not None:
                assert (result.dtype, result.shape, result.stride()) == (other.dtype, other.shape, other.stride())


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_modules(dim, train, affine, calls):
    module = getattr(torch.nn, f"BatchNorm{dim}d")(3, affine=affine, momentum=None).double().train(train)
    input = torch.randn(3, 3, *[2] * dim, dtype=torch.float64, requires_grad=True)
    with bngrad.torch.enabled():
        functions = [lambda x: module(x)]
        if affine:
            parameters = tuple(module.parameters())
            functions.append(lambda x: functional.batch_norm(x, module.running_mean.clone(), module.running_var.clone(),
                                                             *parameters, training=train))
        for function in functions:
            assert torch.autograd.gradcheck(function, (input,))
            assert torch.autograd.gradgradcheck(function, (input,))
    assert not calls


def test_a_step_of_training():
    """A convolution, a batch norm and a ReLU, frozen or not, as in PyTorch."""

    def run(is_frozen):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                    torch.nn.Conv2d(8, 4, 3)).to(memory_format=torch.channels_last)
        model[1].train(not is_frozen)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(4, 3, 9, 9).to(memory_format=torch.channels_last)).square().mean()
        loss.backward()
        return [parameter.grad for parameter in model.parameters()]

    for is_frozen in (False, True):
        expected = run(is_frozen)
        with bngrad.torch.enabled():
            torch.testing.assert_close(run(is_frozen), expected, rtol=2e-2, atol=2e-3)


# That which the kernels do not cover -----------------------------------------


def test_errors_are_those_of_pytorch(calls):
    x, m = torch.randn(4, 3, 5), torch.ones(3)
    arguments = (x.double(), x, None, None, None, m, m, True, 1e-5, [True] * 3)
    with pytest.raises(RuntimeError) as expected:
        native(*arguments)
    with bngrad.torch.enabled(), pytest.raises(RuntimeError) as error:
        native(*arguments)
    assert str(error.value) == str(expected.value)
    assert len(calls) == 1


def test_mixed_types_go_to_pytorch(calls):
    """Running statistics of another type than the weight."""
    x, m = torch.randn(4, 3, 5).bfloat16(), torch.ones(3)
    arguments = (x, x, m.bfloat16(), m, m, None, None, False, 1e-5, [True] * 3)
    with bngrad.torch.enabled(), pytest.raises(RuntimeError):
        native(*arguments)
    assert len(calls) == 1


def test_nothing_wanted(calls):
    x, m = torch.randn(4, 3, 5), torch.ones(3)
    with bngrad.torch.enabled():
        assert native(x, x, None, None, None, m, m, True, 1e-5, [False] * 3) == (None, None, None)


def test_meta_subclasses_and_functorch():
    x = torch.randn(4, 3, 5)
    with bngrad.torch.enabled():
        m = torch.ones(3, device="meta")
        on_meta = native(x.to("meta"), x.to("meta"), None, None, None, m, m, True, 1e-5, [True] * 3)
        assert on_meta[0].is_meta
        from torch.testing._internal.two_tensor import TwoTensor
        module = torch.nn.BatchNorm1d(3)
        two = TwoTensor(x.clone(), x.clone()).requires_grad_()
        module(two).square().sum().backward()
        assert type(two.grad) is TwoTensor
        plain = x.clone().requires_grad_()
        torch.nn.BatchNorm1d(3)(plain).square().sum().backward()
        torch.testing.assert_close(two.grad.a, plain.grad)
        loss = lambda x: functional.batch_norm(x, None, None, training=True).pow(3).sum()
        batch = torch.randn(2, 4, 3, 5)
        grads = torch.func.vmap(torch.func.grad(loss))(batch)
        for one, grad in zip(batch, grads):
            torch.testing.assert_close(grad, torch.func.grad(loss)(one))


def test_grad_mode():
    """Results have no graph beyond that of PyTorch's derivative."""
    x, m = torch.randn(4, 3, 5, requires_grad=True), torch.ones(3)
    with bngrad.torch.enabled():
        with torch.no_grad():
            assert not native(x, x, None, None, None, m, m, True, 1e-5, [True] * 3)[0].requires_grad
        result = native(x, x, None, None, None, m, m, True, 1e-5, [True] * 3)[0]
        assert result.grad_fn.name().startswith("NativeBatchNormBackwardBackward")


# State -----------------------------------------------------------------------


def is_enabled():
    """Whether PyTorch's table has the replacement."""
    return "Override.cpp" in torch._C._dispatch_dump("aten::native_batch_norm_backward")


def test_counting():
    assert not is_enabled()
    bngrad.torch.enable()
    bngrad.torch.enable()
    with bngrad.torch.enabled():
        assert is_enabled()
    bngrad.torch.disable()
    assert is_enabled()
    bngrad.torch.disable()
    assert not is_enabled()


def test_disabling_within_enabled():
    with pytest.raises(RuntimeError, match="without enable.* in enabled"), bngrad.torch.enabled():
        bngrad.torch.disable()
    assert not is_enabled()


def test_a_failure_to_enable(monkeypatch):
    module = sys.modules["bngrad.torch._override"]
    with monkeypatch.context() as patch:
        patch.setattr(module._Pass, "check", lambda self, status: (_ for _ in ()).throw(RuntimeError("refused")))
        with pytest.raises(RuntimeError, match="refused"):
            bngrad.torch.enable()
        module._library_handle.bngradTorchDisable(module._passes["backward", "cpu"].number)
    # The second pass is refused, after the first one was replaced.
    with monkeypatch.context() as patch:
        refused = RuntimeError("refused")
        update = module._Pass.update

        def update_all_but_forward(self, is_wanted):
            if is_wanted and self is module._passes["forward", "cpu"]:
                raise refused
            update(self, is_wanted)

        patch.setattr(module._Pass, "update", update_all_but_forward)
        with pytest.raises(RuntimeError, match="refused"):
            bngrad.torch.enable()
        assert not is_enabled()
    with bngrad.torch.enabled():
        assert is_enabled()
    assert not is_enabled()


def test_a_kernel_that_ends_after_disabling():
    """It still has PyTorch's kernel for arguments that are not covered."""
    with bngrad.torch.enabled():
        pass
    input, ones = torch.randn(4, 3, 5), torch.ones(3)
    arguments = (input.flip(0), input, ones, None, None, ones, ones, True, 0.0, [True] * 3)
    late = torch.ops.bngrad._original_native_batch_norm_backward(*arguments)
    assert all(torch.equal(result, expected) for result, expected in zip(late, native(*arguments)))


def test_exceptions_end_enabled():
    with pytest.raises(KeyError), bngrad.torch.enabled():
        assert is_enabled()
        raise KeyError
    assert not is_enabled()


def test_disabling_restores_the_bits_of_pytorch():
    arguments, _ = reference.make_backward(12)
    before = native(*arguments)
    with bngrad.torch.enabled():
        native(*arguments)
    for old, new in zip(before, native(*arguments)):
        assert old is None and new is None or torch.equal(old, new)


def test_several_threads():
    """Some compute, some switch; every gradient is right."""
    torch.set_num_threads(1)
    x, m = torch.randn(4, 3, 5), torch.ones(3)
    expected = reference.Expected(x, x, m, inv_std=m)
    stop, errors = threading.Event(), []

    def compute():
        while not stop.is_set():
            try:
                expected.check_gradients(*native(x, x, None, None, None, m, m, True, 1e-5, [True] * 3))
            except BaseException as error:  # noqa: B036
                errors.append(error)
                return

    def switch():
        for _ in range(1000):
            with bngrad.torch.enabled():
                pass

    computing = [threading.Thread(target=compute) for _ in range(2)]
    switching = [threading.Thread(target=switch) for _ in range(2)]
    for thread in computing + switching:
        thread.start()
    for thread in switching:
        thread.join()
    stop.set()
    for thread in computing:
        thread.join()
    assert not errors


def test_arguments_are_freed(calls):
    """Also by errors, and when PyTorch's kernel computes."""

    def run(dtype):
        x = torch.randn(64, 3, 500)
        m = torch.ones(3)
        reference_to = weakref.ref(x.untyped_storage())
        try:
            native(x.to(dtype), x, m, None, None, m, m, True, 1e-5, [True] * 3)
        except RuntimeError:
            pass
        return reference_to

    with bngrad.torch.enabled():
        for dtype in (torch.float32, torch.float64):
            freed = run(dtype)
            calls.clear()
            gc.collect()
            assert freed() is None


def test_threads_do_not_change_bits():
    arguments, _ = reference.make_backward(3)
    x = torch.randn(8, 33, 40, 40)
    m = torch.linspace(0.5, 1.5, 33)
    results = []
    threads = torch.get_num_threads()
    try:
        with bngrad.torch.enabled():
            for count in (1, 2, 4):
                torch.set_num_threads(count)
                results.append(native(x, x.sin(), m, None, None, m, m, True, 1e-5, [True] * 3))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_after_fork():
    """A child that the data loader forks may compute, too."""
    code = """
import os, torch, bngrad.torch
bngrad.torch.enable()
module, x = torch.nn.BatchNorm2d(8), torch.randn(8, 8, 30, 30, requires_grad=True)
module(x).square().sum().backward()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    module(x).square().sum().backward()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_example():
    """Both networks start with the same losses."""
    example = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "torch_resnet.py")
    output = subprocess.run([sys.executable, example, "--steps=5"], check=True, capture_output=True, text=True,
                            timeout=120, env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout
    difference = float(re.search(r"largest difference of the first 10 losses: (\S+)", output)[1])
    assert difference < 1e-2 and "with bngrad: " in output


@pytest.mark.parametrize("place", range(3))
def test_storages_that_were_resized(place, calls):
    """PyTorch's own kernel reports them."""
    tensors = [torch.rand(4, 3, 5), torch.rand(4, 3, 5), torch.rand(3)]
    tensors[place].untyped_storage().resize_(0)
    statistics = torch.rand(3), torch.rand(3)
    with bngrad.torch.enabled(), pytest.raises(RuntimeError):
        native(*tensors, None, None, *statistics, True, 0.0, [True] * 3)
    assert len(calls) == 1


def test_no_library_for_cuda_is_loaded():
    """Where only a CPU computes; PyTorch itself may have loaded its own."""
    program = """
import torch, bngrad.torch
bngrad.torch.enable()
torch.nn.BatchNorm1d(3)(torch.randn(4, 3, requires_grad=True)).sum().backward()
loaded = {line.split("/")[-1].strip() for line in open("/proc/self/maps")}
assert any("BNGradRuntime" in name for name in loaded)
print(sorted(name for name in loaded if "BNGradCuda" in name or "libcuda.so" in name))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
