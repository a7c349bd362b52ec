"""Programs for GPUs: kernels as text, and calls without a GPU.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import bngrad
import bngrad_compiler
import numpy as np
import pytest
from program_ir import GRADIENT


@pytest.fixture(scope="module")
def cuda():
    return bngrad.compile(GRADIENT, target="cuda")


def test_ptx(cuda):
    text = cuda.ir("ptx")
    assert ".target sm_90" in text and ".entry" in text
    assert ".target sm_80" in bngrad.compile(GRADIENT, target="cuda:sm_80").ir("ptx")
    assert cuda.target == "cuda" and cuda.schedule[0].startswith(("#bngrad.schedule<one_pass", "#bngrad.schedule<two_pass"))
    for stage in ("group", "apply", "lower", "llvm", "assembly"):
        assert cuda.ir(stage)
    with pytest.raises(bngrad.CompileError, match="expected one chip for ptx, got 'sm_80,sm_90'"):
        bngrad.compile(GRADIENT, target="cuda:sm_80,sm_90").ir("ptx")


def test_calls_without_a_gpu(cuda):
    if not bngrad_compiler.check_device():
        pytest.skip("there is a GPU")
    x, c = np.ones((4, 8, 16), np.float32), np.ones(8, np.float32)
    for _ in range(2):
        with pytest.raises(bngrad.DeviceError, match="target: expected an NVIDIA GPU and its driver, got none: .+"):
            cuda(x, x, c, c)


def test_errors_of_cuda(cuda, monkeypatch):
    """A call has the text of the library."""
    if not bngrad_compiler.check_device():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(cuda, "_has_device", True)
    x, c = np.ones((4, 8, 16), np.float32), np.ones(8, np.float32)
    with pytest.raises(bngrad.Error, match="libcuda.so.1") as caught:
        cuda(x, x, c, c)
    assert caught.value.status == "BNGRAD_INTERNAL_ERROR"
