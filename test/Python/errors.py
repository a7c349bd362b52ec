"""Each error has a class, a status and a text that names the argument.

RUN: %python -m pytest -q %s
"""

import os
import pickle
import re
import subprocess
import sys

import bngrad
import numpy as np
import pytest

X = np.ones((2, 3, 4), np.float32)
C = np.ones(3, np.float32)


def call(grad_output=X, input=X, mean=C, **keywords):
    if "variance" not in keywords:
        keywords.setdefault("inv_std", C)
    return bngrad.batch_norm_backward(grad_output, input, mean, **keywords)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


CASES = [
    ({"inv_std": None}, ValueError, "BAD_PARAM", "expected variance or inv_std, got neither"),
    ({"variance": C, "inv_std": C}, ValueError, "BAD_PARAM", "expected variance or inv_std, got both"),
    ({"mean": C[:2]}, ValueError, "BAD_SHAPE",
     "mean: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
    ({"grad_output": X[..., :3]}, ValueError, "BAD_SHAPE",
     "grad_output: expected dim 2 to have the size of dim 2 of input, 4, got 3"),
    ({"grad_output": X[0]}, ValueError, "BAD_SHAPE", "grad_output: expected rank 3, that of input, got 2"),
    ({"input": np.float32(1), "grad_output": np.ones((), np.float32)}, TypeError, "BAD_DTYPE",
     "input: expected a numpy array or an object with __dlpack__, got numpy.float32"),
    ({"input": np.ones((), np.float32), "grad_output": np.ones((), np.float32)}, ValueError, "BAD_SHAPE",
     "input: expected rank of at least 1, got 0"),
    ({"input": np.ones((1,) * 17, np.float32)}, ValueError, "BAD_SHAPE", "input: expected at most 16 dims, got 17"),
    ({"grad_output": X.astype(np.float16)}, TypeError, "BAD_DTYPE",
     "grad_output: expected the dtype of input, f32, got f16"),
    ({"inv_std": C.astype(np.float64)}, TypeError, "BAD_DTYPE",
     "inv_std: expected the dtype of mean, f32, got f64"),
    ({"variance": C.astype(np.float64)}, TypeError, "BAD_DTYPE",
     "variance: expected the dtype of mean, f32, got f64"),
    ({"input": X.astype(np.int64)}, TypeError, "BAD_DTYPE",
     "input: expected dtype float16, bfloat16, float32 or float64, got int64"),
    ({"input": X.astype(complex)}, TypeError, "BAD_DTYPE",
     "input: expected dtype float16, bfloat16, float32 or float64, got complex128"),
    ({"input": X.astype(object)}, TypeError, "BAD_DTYPE",
     "input: expected dtype float16, bfloat16, float32 or float64, got object"),
    ({"mask": X}, TypeError, "BAD_DTYPE", "mask: expected dtype bool, got f32"),
    ({"mask": X.astype(np.uint8)}, TypeError, "BAD_DTYPE", "mask: expected dtype bool, got uint8"),
    ({"scale": [1.0, 2.0, 3.0]}, TypeError, "BAD_DTYPE",
     "scale: expected a numpy array or an object with __dlpack__, got list"),
    ({"input": np.ma.masked_array(X)}, TypeError, "BAD_DTYPE",
     "input: expected an array whose elements are all there, got a masked array; give its data, and mask"),
    ({"feature_dims": (3,)}, ValueError, "BAD_PARAM",
     "options: expected feature dims to be dims of input, 0 to 2, got 3"),
    ({"feature_dims": -4}, ValueError, "BAD_PARAM",
     "options: expected feature dims to be dims of input, 0 to 2, got -4"),
    ({"feature_dims": 2**70}, ValueError, "BAD_PARAM",
     "options: expected feature dims to be dims of input, 0 to 2, got 2147483647"),
    ({"feature_dims": (2, 1)}, ValueError, "BAD_PARAM",
     "options: expected feature dims to be ascending, got 1 after 2"),
    ({"feature_dims": (1, -2)}, ValueError, "BAD_PARAM",
     "options: expected feature dims to be ascending, got 1 after 1"),
    ({"feature_dims": ()}, ValueError, "BAD_PARAM", "feature_dims: expected at least one, got none"),
    ({"feature_dims": range(9)}, ValueError, "BAD_PARAM", "feature_dims: expected at most 8, got more"),
    ({"feature_dims": "1"}, TypeError, "BAD_DTYPE", "feature_dims: expected integers, got str"),
    ({"feature_dims": np.float32(1)}, TypeError, "BAD_DTYPE", "feature_dims: expected integers, got numpy.float32"),
    ({"feature_dims": (1.0,)}, TypeError, "BAD_DTYPE", "feature_dims: expected an integer, got float"),
    ({"statistics": "running"}, ValueError, "BAD_PARAM", "statistics: expected 'batch' or 'global', got 'running'"),
    ({"statistics": True}, TypeError, "BAD_DTYPE", "statistics: expected 'batch' or 'global', got bool"),
    ({"variance": C, "epsilon": -1}, ValueError, "BAD_PARAM",
     "options: expected epsilon to be finite and at least 0, got -1"),
    ({"variance": C, "epsilon": float("nan")}, ValueError, "BAD_PARAM",
     "options: expected epsilon to be finite and at least 0, got nan"),
    ({"epsilon": 1e-5}, ValueError, "BAD_PARAM",
     "options: expected epsilon to be 0 with an inv_std, which contains it, got 1e-05"),
    ({"variance": C, "epsilon": "small"}, TypeError, "BAD_DTYPE", "epsilon: expected a number, got str"),
    ({"wanted": ()}, ValueError, "BAD_PARAM", "expected grad_input, grad_scale or grad_offset to be wanted, got none"),
    ({"wanted": ("grad_mean",)}, ValueError, "BAD_PARAM",
     "wanted: expected 'grad_input', 'grad_scale' or 'grad_offset', got 'grad_mean'"),
    ({"wanted": "grad_input"}, TypeError, "BAD_DTYPE", "wanted: expected names of gradients, got str"),
    ({"wanted": ("grad_input",), "out": (None, C.copy(), None)}, ValueError, "BAD_PARAM",
     "out: expected None for grad_scale, which is not wanted, got numpy.ndarray"),
    ({"out": X.copy()}, TypeError, "BAD_DTYPE",
     "out: expected a tuple of grad_input, grad_scale and grad_offset, got numpy.ndarray"),
    ({"out": (X.copy(), None)}, TypeError, "BAD_DTYPE",
     "out: expected a tuple of grad_input, grad_scale and grad_offset, got tuple of 2"),
    ({"out": (read_only(X), None, None)}, ValueError, "BAD_PARAM",
     "grad_input: expected memory to write to, got a read-only array"),
    ({"out": (np.ones((2, 3, 5), np.float32), None, None)}, ValueError, "BAD_SHAPE",
     "grad_input: expected dim 2 to have the size of dim 2 of input, 4, got 5"),
    ({"out": (None, np.ones(3, np.int32), None)}, TypeError, "BAD_DTYPE",
     "grad_scale: expected dtype float16, bfloat16, float32 or float64, got int32"),
]


@pytest.mark.parametrize("keywords, kind, status, text", CASES, ids=[case[3][:50] for case in CASES])
def test_error(keywords, kind, status, text):
    with pytest.raises(bngrad.Error) as caught:
        call(**keywords)
    error = caught.value
    assert isinstance(error, kind) and isinstance(error, RuntimeError)
    assert error.status == "BNGRAD_" + status
    assert str(error) == text
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.status) == (type(error), text, error.status)


@pytest.mark.parametrize("reverse", [False, True], ids=["direct", "copied"])
def test_overlap(reverse):
    """The same error whether the C library sees the memory or the copies."""
    dy = X[::-1] if reverse else X
    both = np.zeros(4, np.float32)
    with pytest.raises(bngrad.ParameterError,
                       match="grad_scale: expected memory apart from that of grad_offset, got an overlap"):
        call(dy, out=(None, both[:3], both[1:]))
    pairs = np.zeros((3, 2), np.float32)
    call(dy, out=(None, pairs[:, 0], pairs[:, 1]))
    assert np.array_equal(pairs[:, 1], np.full(3, 8, np.float32))
    with pytest.raises(bngrad.StridesError, match="grad_scale: expected strides that give each element an address"):
        call(dy, out=(None, np.lib.stride_tricks.as_strided(both, (3,), (0,)), None))


def test_partial_overlap_with_input():
    memory = np.ones(25, np.float32)
    with pytest.raises(bngrad.ParameterError, match="grad_input: expected memory apart from that of input"):
        call(input=memory[:24].reshape(2, 3, 4), out=(memory[1:].reshape(2, 3, 4), None, None))


def test_integers_of_numpy():
    expected = call()
    for dims in (1, np.int64(1), np.uint8(1), (np.int32(1),), np.array([1])):
        assert all(map(np.array_equal, call(feature_dims=dims), expected))


def test_missing_arguments():
    with pytest.raises(TypeError):
        bngrad.batch_norm_backward(X, X)
    with pytest.raises(TypeError):
        bngrad.batch_norm_backward(X, X, C, C)


def test_nothing_is_written_before_an_error():
    out = np.full_like(X, 7)
    with pytest.raises(bngrad.Error):
        call(scale=C[:2], out=(out, None, None))
    assert (out == 7).all()


def test_no_references_are_lost():
    """Neither results nor errors keep their arguments alive."""
    import sys
    x, mean = X.copy(), C.copy()
    count = sys.getrefcount(x), sys.getrefcount(mean)
    for _ in range(100):
        call(x, x, mean)
        call(x[::-1], x, mean)
        with pytest.raises(bngrad.Error):
            call(x, x, mean, scale=C[:2])
    assert (sys.getrefcount(x), sys.getrefcount(mean)) == count


@pytest.mark.parametrize("call, kind", [
    ("bngrad.batch_norm_backward(X, X, C, variance=C)", "ParameterError"),
    ("bngrad.compile('func.func @f() { return }')", "ParameterError"),
    ("bngrad.opt('func.func @f() { return }', [])", "ParameterError"),
    ("import bngrad.torch; bngrad.torch.enable()", "RuntimeError"),
    ("import bngrad.torch, torch; x, c = torch.ones(2, 3), torch.ones(3); "
     "torch.ops.bngrad.batch_norm_backward(x, x, c, variance=c)", "RuntimeError"),
    ("import bngrad.jax; bngrad.jax.batch_norm_backward(X, X, C, variance=C)", "RuntimeError"),
])
def test_instruction_set(call, kind):
    """BNGRAD_ISA is read by the first call, which names it, whatever the framework."""
    module = re.match(r"import bngrad\.(\w+)", call)
    if module:
        pytest.importorskip(f"bngrad.{module[1]}", exc_type=ImportError)
    if ".compile" in call or ".opt" in call:
        pytest.importorskip("bngrad_compiler")
    program = f"import bngrad, numpy as np; X, C = np.ones((2, 3), np.float32), np.ones(3, np.float32); {call}"
    run = subprocess.run([sys.executable, "-c", program], env=os.environ | {"BNGRAD_ISA": "vax"}, capture_output=True,
                         text=True)
    assert run.returncode == 1
    assert re.search(kind + r": (.*: )?BNGRAD_ISA: expected an instruction set that this CPU has \(.+\), got 'vax'$",
                     run.stderr, re.MULTILINE), run.stderr
