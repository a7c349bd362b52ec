"""The handlers of bngrad.jax for CUDA over a driver that does nothing: what they ask for, and in which stream.

REQUIRES: jax, python-compiler
UNSUPPORTED: sanitizer
RUN: %llvm_prefix/bin/clang -shared -fPIC %S/Inputs/stream_driver.c -o %t.so
RUN: env -u BNGRAD_COMPILER BNGRAD_CUDA_DRIVER=%t.so %python -m pytest -q %s
"""

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xla_cuda
from bngrad.jax import _prepare
from xla_cuda import INITIALIZE, Xla, XlaError

import bngrad.jax as bj

DRIVER = ctypes.CDLL(os.environ["BNGRAD_CUDA_DRIVER"])
LIBRARY = _prepare.load()
MEMORY = 1 << 40
ATTRIBUTES = {
    "rank": np.int64(3), "feature_dims": np.array([2]), "epsilon": np.float64(1e-5), "has_scale": False,
    "has_offset": False, "wants_output": True, "wants_mean": False, "wants_variance": False, "wants_inv_std": False}


class Buffer:
    """An address that must not be accessed."""

    def __init__(self, number, shape):
        self.address, self.shape, self.dtype = MEMORY + (number << 30), shape, np.dtype(np.float32)


class DriverXla(Xla):
    def _allocate(self, call):
        call.data = 1 << 39
        self.scratch.append(call.size)

    def _free(self, call):
        self.num_freed += 1


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """A GPU instead of the emulator."""
    monkeypatch.delenv("BNGRAD_CUDA_EMULATOR")


def count(*names):
    return [DRIVER.getNumCalls(name.encode()) for name in names]


def run(xla, shape, symbol="bngradJaxTrainingCuda", **keywords):
    xla.call(symbol, [Buffer(0, shape)], [Buffer(1, shape)], ATTRIBUTES, **keywords)


def test_calls_of_the_driver():
    shape = (64, 56, 64)
    run(DriverXla(LIBRARY), shape, "bngradJaxTrainingCudaInitialize", stage=INITIALIZE)
    assert count("cuModuleLoadDataEx", "cuLaunchKernelEx") == [0, 0]
    launches = []
    for stream in (1 << 20, 1 << 21, None):
        before, = count("cuLaunchKernelEx")
        run(DriverXla(LIBRARY, stream), shape)
        assert ctypes.c_void_p.in_dll(DRIVER, "lastStream").value == stream
        launches.append(count("cuLaunchKernelEx")[0] - before)
    assert launches[0] >= 1 and len(set(launches)) == 1
    # The module was loaded once. Nothing waits, copies or allocates.
    assert count("cuModuleLoadDataEx") == [1]
    assert count("cuStreamCreate", "cuStreamSynchronize", "cuEventSynchronize", "cuMemAlloc_v2", "cuMemAllocManaged",
                 "cuMemAllocFromPoolAsync", "cuMemcpyAsync", "cuPointerGetAttribute") == [0] * 8


def test_device_is_that_of_xla():
    with pytest.raises(XlaError, match="device: expected a device that can be used.*cuDeviceGet.*device 5"):
        run(DriverXla(LIBRARY, device=5), (2, 3, 4))


def test_programs_with_a_gpu(monkeypatch):
    """A kernel that cannot be compiled for the GPU, or a GPU that the library cannot use, leaves the formulas."""
    x = jnp.ones((4, 3, 8))
    reduce = lambda x: bj.batch_norm_backward_reduce(x, x, jnp.ones(x.shape[2]), feature_dims=(2,))

    def lower(x):
        return jax.jit(reduce).trace(x).lower(lowering_platforms=("cuda",)).as_text()

    assert "@bngrad.batch_norm_backward_reduce(" in lower(x)
    numbers = []
    monkeypatch.setattr(_prepare, "_find_gpu", lambda: numbers.append(0) or 0)
    jax.clear_caches()
    assert "@bngrad.batch_norm_backward_reduce(" in lower(x)
    monkeypatch.setattr(_prepare, "_find_gpu", lambda: numbers.append(5) or 5)
    jax.clear_caches()
    assert "bngrad." not in lower(x)
    assert numbers == [0, 5]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
