"""The calls that go to PyTorch's own kernels while bngrad.torch is enabled."""

import sys

import torch


def record(monkeypatch, *ops):
    """Returns a list to which every call of PyTorch's kernels of `ops`, such as "native_batch_norm", is added."""
    calls = []

    class Kernel:

        def __init__(self, kernel):
            self.kernel = kernel

        def call_boxed(self, *arguments, **given):
            calls.append(arguments)
            return self.kernel.call_boxed(*arguments, **given)

    names = ["aten::" + op for op in ops]
    get_kernel = torch.library.get_kernel
    wrap = lambda name, *key: Kernel(get_kernel(name, *key)) if name in names else get_kernel(name, *key)
    monkeypatch.setattr(sys.modules["bngrad.torch._override"].torch.library, "get_kernel", wrap)
    return calls
