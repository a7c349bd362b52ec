# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""enable(compile=True): graphs of torch.compile with whole gradients."""

import re
import sys
import uuid

import pytest
import torch
from torch import nn
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.utils import run_and_get_code

import bngrad.torch

OP = "bngrad.batch_norm_backward"


class Block(nn.Module):
    """ReLU(BN(x)), or ReLU(BN(x) + skip)."""

    def __init__(self, channels, **options):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, **options)

    def forward(self, x, *skip):
        y = self.norm(x)
        return torch.relu(y + skip[0] if skip else y)


class Downsample(nn.Module):
    """ReLU(BN(x) + BN(z)), where ResNets change the shape."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x, z):
        return torch.relu(self.first(x) + self.second(z))


class Chain(nn.Module):
    """Residual blocks, whose masked gradients are added to others."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x, z):
        y = torch.relu(self.first(x * z) + x)
        return torch.relu(self.second(y * z) + y)


class Relu6(nn.Module):
    """Whose condition is made of two comparisons."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return nn.functional.relu6(4 * self.norm(x))


class Filled(nn.Module):
    """BN(x) with zeros where a mask of the caller says so."""

    def __init__(self, channels, branches, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(branches))

    def forward(self, x):
        return sum(norm(x) for norm in self.norms).masked_fill(self.mask, 0.0)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    with pytest.raises(RuntimeError):
        bngrad.torch.disable()
    assert config.joint_custom_pre_pass is None


def make_inputs(count, shape=(4, 6, 9, 7), dtype=torch.float32, memory_format=torch.contiguous_format):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype).to(memory_format=memory_format).requires_grad_() for _ in range(count)]


def gradients(function, module, inputs):
    for tensor in (*inputs, *module.parameters()):
        tensor.grad = None
    output = function(*inputs)
    output.backward(torch.linspace(-1, 2, output.numel()).view_as(output).to(output))
    return [tensor.grad for tensor in (*inputs, *module.parameters())]


def compile_and_compare(module, inputs, tolerance=1e-5, **options):
    """The text of the compiled graphs; gradients are those of eager mode."""
    with bngrad.torch.enabled():
        expected = gradients(module, module, inputs)
    with bngrad.torch.enabled(compile=True):
        compiled = torch.compile(module, fullgraph=True, **options)
        results, codes = run_and_get_code(gradients, compiled, module, inputs)
    for result, other in zip(results, expected):
        scale = float(other.abs().max())
        torch.testing.assert_close(result, other, rtol=0, atol=tolerance * (1 + scale))
        assert result.stride() == other.stride()
    return "\n".join(codes)


FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("skips", [0, 1])
def test_gradient_stays_whole(memory_format, skips):
    code = compile_and_compare(Block(6), make_inputs(1 + skips, memory_format=memory_format))
    assert OP in code


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("module, count", [(Block(6), 1), (Block(6), 2), (Downsample(6), 2), (Chain(6), 2),
                                           (Relu6(6), 1)],
                         ids=["relu", "skip", "downsample", "chain", "relu6"])
def test_conditions_are_computed_anew(module, count, memory_format):
    """No loop stores or loads a condition, neither forward nor backward."""
    code = compile_and_compare(module, make_inputs(count, memory_format=memory_format))
    assert OP in code and "cpp_fused" in code and "bool*" not in code, code


def find_calls(code):
    """The arguments of each call of the op."""
    return re.findall(r"bngrad\.batch_norm_backward\.default\((.*)\)", code)


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_masked_gradient_is_written_once(memory_format):
    """One loop writes it, for both batch norms."""
    code = compile_and_compare(Downsample(6), make_inputs(2, memory_format=memory_format))
    first, second = find_calls(code)
    assert first.split(",")[0] == second.split(",")[0]
    loops = code[code.rindex("def call("):]
    assert len(re.findall(r"^ *cpp_fused", loops, re.MULTILINE)) == 1


@pytest.mark.parametrize("branches", [1, 2])
def test_other_masks_are_given_to_the_op(branches):
    """Where the condition is no comparison, each op gets the mask and the
    incoming gradient, and no loop loads the mask."""
    inputs = make_inputs(1)
    module = Filled(6, branches, torch.rand(inputs[0].shape) < 0.3)
    code = compile_and_compare(module, inputs)
    backward = code[code.rindex("async_compile = "):]
    calls = find_calls(code)
    assert len(calls) == branches and "bool*" not in backward, backward
    for call in calls:
        arguments = call.split(", ")
        assert arguments[0] == "tangents_1" and arguments[7].startswith("buf"), call


@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}], ids=str)
def test_options(options):
    assert OP in compile_and_compare(Block(6, **options), make_inputs(1))


def test_frozen():
    assert OP in compile_and_compare(Block(6).eval(), make_inputs(1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_types(dtype):
    module = Block(6).to(torch.float32 if dtype == torch.bfloat16 else dtype)
    assert OP in compile_and_compare(module, make_inputs(1, dtype=dtype), 2e-2 if dtype == torch.bfloat16 else 1e-12)


@pytest.mark.parametrize("options", [{}, {"track_running_stats": False}], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_statistics_of_short_types_are_in_f32(dtype, options):
    """As in eager mode: gradients of parameters of f32 have its digits, and running statistics, too."""
    input, = make_inputs(1, (16, 6, 32, 32))
    with torch.no_grad():
        input.add_(torch.linspace(-3, 8, 6).view(6, 1, 1))
    input = input.detach().to(dtype).requires_grad_()
    results = []
    for compile in (False, True):
        module = Block(6, **options)
        with bngrad.torch.enabled(compile=compile):
            function = torch.compile(module, fullgraph=True) if compile else module
            results.append([*gradients(function, module, [input])[1:], *module.norm.buffers()])
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=2e-6 * (1 + float(other.abs().max())))


def test_tables_are_restored():
    from torch._inductor import decomposition
    before = dict(decomposition.decompositions)
    with bngrad.torch.enabled(compile=True):
        assert decomposition.decompositions != before
    assert decomposition.decompositions == before


def test_dynamic_shapes():
    assert OP in compile_and_compare(Block(6), make_inputs(2), dynamic=True)


def test_not_a_number_in_a_relu():
    """PyTorch's ReLU hands the gradient on where its output is NaN."""
    for skips in (0, 1):
        torch._dynamo.reset()
        inputs = make_inputs(1 + skips)
        module = Block(6)
        with torch.no_grad():
            module.norm.bias[2] = float("nan")
        expected = gradients(module, module, inputs)
        with bngrad.torch.enabled(compile=True):
            results = gradients(torch.compile(module, fullgraph=True), module, inputs)
        for result, other in zip(results, expected):
            torch.testing.assert_close(result, other, equal_nan=True)


def test_only_while_enabled():
    """Graphs of inductor's cache on disk are those of the present state."""
    module, inputs = Block(6), make_inputs(1)
    for compile in (False, True, False, True):
        torch._dynamo.reset()
        with bngrad.torch.enabled(compile=compile):
            _, codes = run_and_get_code(gradients, torch.compile(module), module, inputs)
        assert (OP in "\n".join(codes)) == compile


def test_a_pass_of_the_user_runs_too():
    # Another one in each run, for which no graph is on disk.
    own_key = str(uuid.uuid4())
    seen = []

    class Pass(CustomGraphPass):

        def __call__(self, graph):
            seen.append(len(graph.nodes))

        def uuid(self):
            return own_key

    own = Pass()
    config.joint_custom_pre_pass = own
    try:
        with bngrad.torch.enabled(compile=True):
            assert config.joint_custom_pre_pass is not own
            key = config.joint_custom_pre_pass.uuid()
            assert own_key in key and len(key) == 3
            gradients(torch.compile(Block(6)), Block(6), make_inputs(1))
        assert config.joint_custom_pre_pass is own and seen
        own.uuid = lambda: None
        with bngrad.torch.enabled(compile=True):
            assert config.joint_custom_pre_pass.uuid() is None
    finally:
        config.joint_custom_pre_pass = None


def test_uncovered_gradients_are_decomposed():
    """Parameters of another type than PyTorch's kernel takes."""
    module = sys.modules["bngrad.torch._inductor"]
    zeros = torch.zeros
    with bngrad.torch.enabled(compile=True):
        assert not module._is_covered(zeros(2, 3), zeros(3).double(), zeros(3), zeros(3))
        assert not module._is_covered(zeros(2, 3, device="meta"), None, zeros(3), zeros(3))
        assert module._is_covered(zeros(2, 3), None, zeros(3), zeros(3))
    with bngrad.torch.enabled(compile=True, devices=["cuda"]):
        assert not module._is_covered(zeros(2, 3), None, zeros(3), zeros(3))


def test_nesting():
    with bngrad.torch.enabled(compile=True), bngrad.torch.enabled():
        assert config.joint_custom_pre_pass is not None
    bngrad.torch.enable()
    bngrad.torch.enable(compile=True)
    bngrad.torch.disable()
    assert config.joint_custom_pre_pass is None
    bngrad.torch.disable()
