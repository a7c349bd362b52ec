# RUN: %llvm_prefix/bin/clang -shared -fPIC %S/Inputs/stream_driver.c -o %t.so
# RUN: %llvm_prefix/bin/clang -w -shared -fPIC -DHOST_MEMORY -I%bngrad_src_root/include %S/Inputs/Cudart.c \
# RUN:   -Wl,-soname,libcuda.so.1 -o %t.cudart.so
# RUN: env -u BNGRAD_COMPILER BNGRAD_CUDA_DRIVER=%t.so LD_PRELOAD=%t.cudart.so %python -m pytest -q %s
# REQUIRES: torch, python-compiler
# UNSUPPORTED: sanitizer
"""Batch norms of CUDA tensors over a driver that does nothing: in which stream they are launched, and what else they
ask for. Memory of PyTorch is that of the host, which nothing accesses."""

import ctypes
import os

import torch

import bngrad.torch

DRIVER = ctypes.CDLL(os.environ["BNGRAD_CUDA_DRIVER"])
NEVER = ("cuStreamCreate", "cuStreamSynchronize", "cuEventSynchronize", "cuMemAlloc_v2", "cuMemAllocManaged",
         "cuMemAllocFromPoolAsync", "cuMemcpyAsync", "cuPointerGetAttribute")


def count(name):
    return DRIVER.getNumCalls(name.encode())


def make_call():
    x, channels = torch.empty(8, 64, 28, 28, device="cuda"), [torch.empty(64, device="cuda") for _ in range(4)]

    def run():
        _, mean, inv_std = torch.ops.aten.native_batch_norm(x, *channels, True, 0.1, 1e-5)
        torch.ops.aten.native_batch_norm_backward(x, x, channels[0], None, None, mean, inv_std, True, 1e-5, [True] * 3)

    return run


def test_streams():
    """Launches are in PyTorch's current stream. Nothing waits, copies, allocates or loads again."""
    run = make_call()
    with bngrad.torch.enabled(devices=["cuda"]):
        run()
        modules, launches = count("cuModuleLoadDataEx"), []
        assert modules > 0
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream()):
            before = count("cuLaunchKernelEx")
            with torch.cuda.stream(stream):
                run()
            assert (ctypes.c_void_p.in_dll(DRIVER, "lastStream").value or 0) == stream.cuda_stream
            launches.append(count("cuLaunchKernelEx") - before)
    assert launches[0] >= 2 and len(set(launches)) == 1
    assert count("cuModuleLoadDataEx") == modules
    assert [count(name) for name in NEVER] == [0] * len(NEVER)
