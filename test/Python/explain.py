"""bngrad.explain: the kernel, its schedule, traffic and times.

RUN: %python -m pytest -q %s
"""

import math
import os
import pathlib
import re
import subprocess
import sys

import bngrad
import numpy as np
import pytest
from bngrad import _explain

ROOT = pathlib.Path(__file__).resolve().parents[2]


def explain(shape, dtype="float32", **options):
    return bngrad.explain(shape, dtype, rounds=1, **options)


@pytest.fixture(autouse=True)
def small_traffic(monkeypatch):
    """Times of memory are of no interest here."""
    monkeypatch.setattr(_explain, "_TRAFFIC_BYTES", 1 << 20)
    count = bngrad.get_num_threads()
    yield
    bngrad.set_num_threads(count)


@pytest.mark.parametrize("shape, options, form, sizes, schedule", [
    ((8, 16, 20, 20), {}, "planes", (8, 16, 400), "channels"),
    ((8, 7, 300), {}, "planes", (8, 7, 300), "split"),
    ((8, 7, 200), {}, "planes", (8, 7, 200), "channels"),
    ((128, 64, 20), {}, "planes", (128, 64, 20), "tiles"),
    ((127, 64, 20), {}, "planes", (127, 64, 20), "channels"),
    ((8, 16, 20, 20), {"order": (0, 2, 3, 1)}, "rows", (3200, 16, 1), "rows"),
    ((64, 32), {}, "rows", (64, 32, 1), "rows"),
    ((4, 5, 6), {"feature_dims": -1}, "rows", (20, 6, 1), "rows"),
    ((4, 5, 6), {"feature_dims": (1, 2)}, "rows", (4, 30, 1), "rows"),
    ((0, 5, 6), {}, "rows", (0, 5, 1), "rows"),
])
def test_kernel(shape, options, form, sizes, schedule):
    explanation = explain(shape, **options)
    assert explanation.kernel == "ready" and explanation.isa
    assert (explanation.form, explanation.sizes, explanation.schedule) == (form, sizes, schedule)
    assert explanation.reason == "" and explanation.copied == ()
    assert schedule in str(explanation) and str(explanation) == repr(explanation)


@pytest.mark.parametrize("dtype, width", [
    ("float16", 2), ("bf16", 2), ("f32", 4), (np.float32, 4), (np.dtype(np.float64), 8), (float, None), ("int8", None),
])
def test_types(dtype, width):
    if width is None:
        with pytest.raises(bngrad.DtypeError, match="^dtype: expected float16, bfloat16, float32 or float64, got "):
            explain((2, 3), dtype)
        return
    assert explain((2, 3), dtype).bytes["input"] == 6 * width


def test_types_of_libraries():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert explain((2, 3), ml_dtypes.bfloat16).title.startswith("bfloat16 2x3,")
    torch = pytest.importorskip("torch")
    assert explain((2, 3), torch.bfloat16).title.startswith("bfloat16 2x3,")


def test_traffic_of_a_call():
    explanation = explain((4, 3, 5), mask=True)
    assert explanation.bytes == {"grad_output": 240, "input": 240, "mask": 60, "grad_input": 240}
    assert explanation.passes == {"grad_output": 2, "input": 2, "mask": 2, "grad_input": 1}
    # The caches hold them.
    assert set(explanation.crossings.values()) == {1} and explanation.bytes_moved == 780
    assert explain((4, 3, 5), wanted=("grad_scale", "grad_offset")).passes == {"grad_output": 1, "input": 1}
    assert explain((4, 3, 5), statistics="global", wanted=["grad_input"]).passes == {"grad_output": 1, "grad_input": 1}


@pytest.mark.parametrize("op, wanted, passes", [
    ("batch_norm_training", None, {"input": 2, "output": 1}),
    ("batch_norm_training", ("mean", "inv_std"), {"input": 1}),
    ("batch_norm_inference", None, {"input": 1, "output": 1}),
])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_forward(op, wanted, passes, dtype):
    explanation = explain((16, 32, 20, 20), dtype, op=op, wanted=wanted, parameter_dtype="float32")
    assert (explanation.kernel, explanation.reason, explanation.schedule) == ("ready", "", "channels")
    assert explanation.passes == passes and set(explanation.bytes.values()) == {204800 * (4 if dtype == "float32" else 2)}
    assert explanation.title == f"{dtype} 16x32x20x20, feature dims 1, {op.removeprefix('batch_norm_')}"
    apart = explain((4, 3, 5, 2), op=op, wanted=wanted, feature_dims=(0, 2))
    assert "its feature dims are apart in memory" in apart.reason and set(apart.copied) == set(passes)


def test_times():
    explanation = explain((16, 32, 28, 28))
    assert explanation.measured > 0 and explanation.bandwidth > 0
    assert math.isclose(explanation.expected, explanation.bytes_moved / explanation.bandwidth)
    assert math.isclose(explanation.ratio, explanation.measured / explanation.expected)
    assert math.isnan(explain((0, 3)).ratio)


def test_bandwidth_is_measured_once_for_each_number_of_threads(monkeypatch):
    monkeypatch.setattr(_explain, "_bandwidths", {})
    bngrad.set_num_threads(2)
    first = explain((4, 3, 5)).bandwidth
    assert explain((8, 3, 5)).bandwidth == first
    bngrad.set_num_threads(1)
    explain((4, 3, 5))
    assert set(_explain._bandwidths) == {1, 2}


def test_threads():
    bngrad.set_num_threads(3)
    assert explain((8, 16, 20, 20)).threads == 3
    # Too little work for several.
    assert explain((8, 3, 20)).threads == 1


def test_copies():
    """Feature dims apart have no ready kernel, so the data are transposed."""
    explanation = explain((4, 3, 5, 2), feature_dims=(0, 2))
    assert "its feature dims are apart in memory" in explanation.reason
    assert "libBNGradCompiler.so" in explanation.reason
    assert set(explanation.copied) == {"grad_output", "input", "grad_input"}
    assert explanation.schedule == "rows" and explanation.sizes == (6, 20, 1)
    assert explanation.crossings == {"grad_output": 3, "input": 3, "grad_input": 3}
    assert explanation.bytes_moved == 3 * 3 * 480
    text = str(explanation)
    assert "reason" in text and "copied" in text


def test_copies_of_another_type():
    explanation = explain((4, 3, 5), parameter_dtype="float64")
    assert "its parameters are of f64" in explanation.reason
    # 4 bytes of each operand, and of its copy 8, twice.
    assert explanation.bytes["input"] == 240 and explanation.bytes_moved == 3 * 60 * (4 + 8 + 8)


class TestModel:
    """Which tensors cross memory how often."""

    def make(self, total, cache, copied=(), **lines):
        texts = {"data": "f32", "passes.grad_output": "2", "passes.input": "2", "passes.grad_input": "1",
                 "reuse_bytes": "1000", "streaming": "0"} | lines
        return _explain.Traffic(texts, total // 12, 4, copied, cache)

    def test_second_pass_beyond_the_caches(self):
        assert self.make(1200, cache=1000, streaming="1").crossings == {
            "grad_output": 1, "input": 1, "grad_input": 1}
        assert self.make(1200, cache=999, streaming="1").crossings == {"grad_output": 2, "input": 2, "grad_input": 1}
        assert self.make(1200, cache=999, streaming="1").moved == 5 * 400

    def test_lines_are_read_before_they_are_written(self):
        assert self.make(1200, cache=1199).crossings["grad_input"] == 2
        assert self.make(1200, cache=1200).crossings["grad_input"] == 1


def test_a_compiled_kernel_is_known_by_its_tensors():
    lines = {"kernel": "compiled", "reason": "its data have gaps", "part": "whole"}
    lines |= {"passes.grad_output": "1", "passes.input": "1", "passes.grad_input": "1"}
    traffic = _explain.Traffic(lines, 100, 4, (), 1 << 20)
    explanation = _explain.Explanation("title", lines, "", (), traffic, 1e-6, 1e9, 1, 1 << 20)
    assert explanation.schedule is None and explanation.form is None and explanation.isa is None
    text = str(explanation)
    assert "its data have gaps" in text and "chosen by the compiler" in text and explanation.bytes_moved == 1200


def test_kinds_of_sequences():
    expected = explain((4, 3, 5), feature_dims=(0, 1), wanted=("grad_input",))
    for explanation in (explain(iter((4, 3, 5)), feature_dims=iter((0, 1)), wanted=iter(["grad_input"])),
                        explain(np.array([4, 3, 5]), feature_dims=np.array([0, 1]), wanted=["grad_input"])):
        assert explanation.title == expected.title and explanation.sizes == expected.sizes == (1, 12, 5)
        assert explanation.passes == expected.passes
    assert explain((4, 3, 5), feature_dims=np.int64(2)).sizes == (12, 5, 1)
    assert explain((4, 3, 5), wanted=None).passes == explain((4, 3, 5)).passes


@pytest.mark.parametrize("arguments, options, kind, text", [
    (((),), {}, ValueError, "shape: expected 1 to 16 dims, got 0"),
    (((1,) * 17,), {}, ValueError, "shape: expected 1 to 16 dims, got 17"),
    (((2, -3),), {}, ValueError, "shape: expected sizes of 0 to 2^47 - 1, got -3"),
    (((2, 1 << 47),), {}, ValueError, f"shape: expected sizes of 0 to 2^47 - 1, got {1 << 47}"),
    (((2, 3.0),), {}, TypeError, "shape: expected integers, got (2, 3.0)"),
    ((None,), {}, TypeError, "shape: expected integers, got None"),
    (((1 << 40, 1 << 40),), {}, ValueError, None),
    (((2, 3),), {"feature_dims": ()}, ValueError, "feature_dims: expected at least one, got none"),
    (((2, 3),), {"feature_dims": 2}, ValueError, "feature_dims: expected dims of shape, 0 to 1, got 2"),
    (((2, 3),), {"feature_dims": -3}, ValueError, "feature_dims: expected dims of shape, 0 to 1, got -3"),
    (((2, 3),), {"feature_dims": (1, 0)}, ValueError, "feature_dims: expected ascending dims, got [1, 0]"),
    (((1,) * 10,), {"feature_dims": range(9)}, ValueError, "feature_dims: expected at most 8, got 9"),
    (((2, 3),), {"feature_dims": "1"}, TypeError, "feature_dims: expected integers, got '1'"),
    (((2, 3),), {"statistics": "running"}, ValueError, "statistics: expected 'batch' or 'global', got 'running'"),
    (((2, 3),), {"order": (0, 0)}, ValueError, "order: expected each of the dims 0 to 1 once, got [0, 0]"),
    (((2, 3),), {"parameter_dtype": "i8"}, TypeError, "parameter_dtype: expected float16, bfloat16, float32 or "
                                                      "float64, got i8"),
    (((2, 3),), {"wanted": ()}, ValueError, "wanted: expected at least one result, got none"),
    (((2, 3),), {"wanted": 3}, TypeError, "wanted: expected names of results, got int"),
    (((2, 3),), {"wanted": "grad_input"}, TypeError, "wanted: expected names of results, got str"),
    (((2, 3),), {"wanted": ("grad",)}, ValueError,
     "wanted: expected 'grad_input', 'grad_scale' or 'grad_offset', got 'grad'"),
    (((2, 3),), {"op": "batch_norm"}, ValueError,
     "op: expected 'batch_norm_backward', 'batch_norm_training' or 'batch_norm_inference', got 'batch_norm'"),
    (((2, 3),), {"op": "batch_norm_inference", "wanted": ("mean",)}, ValueError,
     "wanted: expected 'output', got 'mean'"),
    (((2, 3),), {"op": "batch_norm_training", "mask": True}, ValueError,
     "mask: expected False for batch_norm_training, got True"),
    (((2, 3),), {"op": "batch_norm_inference", "statistics": "global"}, ValueError,
     "statistics: expected 'batch' for batch_norm_inference, got 'global'"),
    (((2, 3),), {"rounds": 0}, ValueError, "rounds: expected at least 1, got 0"),
])
def test_errors(arguments, options, kind, text):
    with pytest.raises(bngrad.Error) as caught:
        bngrad.explain(*arguments, "float32", **{"rounds": 1} | options)
    assert isinstance(caught.value, kind)
    assert text is None or str(caught.value) == text
    assert "\n" not in str(caught.value)


def test_more_data_than_memory():
    with pytest.raises((MemoryError, bngrad.Error)):
        explain((1 << 20, 1 << 20))


def test_other_instruction_set():
    program = "import bngrad; print(bngrad.explain((4, 3, 5), 'f32', rounds=1).isa)"
    # Of the oldest that has kernels.
    name = "x86-64-v2" if os.uname().machine == "x86_64" else "armv8-a"
    printed = subprocess.run([sys.executable, "-c", program], env=os.environ | {"BNGRAD_ISA": name}, check=True,
                             capture_output=True, text=True).stdout
    assert printed.strip() == name


def test_documentation(monkeypatch):
    """The text of docs/python.md is that of this version, with the usual last-level cache."""
    monkeypatch.setattr(_explain, "cache_bytes", lambda: 32 << 20)
    section = (ROOT / "docs/python.md").read_text().split("\n## Explanations\n")[1].split("\n## ")[0]
    call, text = re.search(r">>> (bngrad\.explain\(.*\))\n(.*?)```", section, re.DOTALL).groups()
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    bngrad.set_num_threads(1)
    actual = [line.split(maxsplit=1) for line in str(eval(call)).splitlines()]
    assert [name for name, _ in lines] == [name for name, _ in actual]
    fixed = {"float32", "schedule", "moved"}
    assert [line for line in lines if line[0] in fixed] == [line for line in actual if line[0] in fixed]
    attributes = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)*", section, re.MULTILINE)
    explanation = explain((4, 3, 5))
    assert attributes and all(hasattr(explanation, name) for names in attributes for name in names if name)
