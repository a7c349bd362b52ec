"""Smoke test of the wheel bngrad-compiler; the argument is the root of the sources."""

import ctypes
import os
import pathlib
import sys
import time

root = sys.argv[1]

import bngrad  # noqa: E402

assert "bngrad_compiler" not in sys.modules

import bngrad_compiler  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

start = time.perf_counter()
ctypes.CDLL(bngrad_compiler.library_path())
load_time = time.perf_counter() - start
assert load_time <= 0.25, f"expected the library to load in 250 ms, got {load_time}"

TEXT = """
func.func @gradient(%dy: tensor<?x3x?xT>, %x: tensor<?x3x?xT>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<?x3x?xT>, tensor<3xf32>, tensor<3xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3x?xT>)
      input(%x : tensor<?x3x?xT>) mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>)
      : tensor<?x3x?xT>, tensor<3xf32>, tensor<3xf32>
  return %dx, %dscale, %doffset : tensor<?x3x?xT>, tensor<3xf32>, tensor<3xf32>
}"""
x = np.arange(48, dtype=np.float32).reshape(2, 3, 8) ** 1.5
dy = np.cos(x)
mean, inv_std = x.mean((0, 2)), 1 / x.std((0, 2))


def spread(a):
    return a.astype(np.float64).reshape(1, 3, 1)


def check(got, dy, x, tolerance):
    dy, x = dy.astype(np.float64), x.astype(np.float64)
    centred = (x - spread(mean)) * spread(inv_std)
    offset, scale = dy.sum((0, 2)), (dy * centred).sum((0, 2))
    expected = (spread(inv_std) * (dy - (spread(offset) + centred * spread(scale)) / 16), scale, offset)
    for a, b in zip(got, expected):
        assert np.abs(a.astype(np.float64) - b).max() <= tolerance, (a, b)


for dtype, name, tolerance in ((np.float32, "f32", 1e-5), (ml_dtypes.bfloat16, "bf16", 2e-2)):
    operands = dy.astype(dtype), x.astype(dtype)
    program = bngrad.compile(TEXT.replace("xT", f"x{name}"))
    check(program(*operands, mean, inv_std), *operands, tolerance)
for stage in ("import", "decompose", "fuse", "group", "bufferize", "apply", "lower", "llvm", "assembly"):
    assert program.ir(stage), stage
assert "linalg.generic" in bngrad.opt(TEXT.replace("xT", "xf32"), ["--bngrad-decompose"])
cuda = bngrad.compile(TEXT.replace("xT", "xf32"), target="cuda")
assert ".target sm_90" in cuda.ir("ptx")
if bngrad_compiler.check_device():
    try:
        cuda(dy, x, mean, inv_std)
    except bngrad.DeviceError as error:
        assert "expected an NVIDIA GPU and its driver, got none" in str(error), error
    else:
        raise AssertionError("expected an error")
else:
    check(cuda(dy, x, mean, inv_std), dy, x, 1e-4)
try:
    bngrad.compile("func.func @f(")
except bngrad.CompileError as error:
    assert error.diagnostics[0].line == 1, error
else:
    raise AssertionError("expected an error")

# The C library finds the compiler for a gradient without a ready kernel, whose feature dims are
# apart in memory.
cache = pathlib.Path(os.environ["HOME"], ".cache/bngrad")
y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
c = np.ones((2, 4), np.float32)
results = bngrad.batch_norm_backward(np.cos(y), y, c, inv_std=c, feature_dims=(0, 2))
assert np.abs(results[2] - np.cos(y).sum(1)).max() <= 1e-6
assert list(cache.glob("llvmcache-*")), sorted(cache.glob("*"))

with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
inside = sorted(path for path in paths if path.startswith(root + "/"))
assert not inside, inside
libraries = sorted(path for path in paths if "libBNGrad" in path)
assert len(libraries) == 4 and all(path.startswith(sys.prefix) for path in libraries), libraries
assert not any("libLLVM" in path or "libMLIR" in path for path in paths), paths
print(f"bngrad_compiler {bngrad_compiler.version()}, loaded in {load_time * 1000:.1f} ms")
