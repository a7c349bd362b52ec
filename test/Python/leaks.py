# RUN: %python -m pytest -q %s
# REQUIRES: torch, jax
"""The memory of 100,000 calls of each kind: their process must not grow by 1 MB."""

import copy
import gc
import os
import sys

import jax
import numpy as np
import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from exporter import Exporter

import bngrad
import bngrad.jax
import bngrad.torch

CALLS = 100_000 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 5_000
GRADIENT = """
func.func @f(%x: tensor<?x3x?xf32>, %m: tensor<3xf32>) -> tensor<?x3x?xf32> {
  %a, %b, %c = bngrad.batch_norm_backward grad_output(%x : tensor<?x3x?xf32>) input(%x : tensor<?x3x?xf32>)
      mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>) : tensor<?x3x?xf32>, tensor<3xf32>, tensor<3xf32>
  return %a : tensor<?x3x?xf32>
}
"""


def fails(function):
    def call():
        with pytest.raises((bngrad.Error, RuntimeError)):
            function()
    return call


def make_calls():
    x = np.random.default_rng(0).random((4, 3, 2), np.float32)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    of_torch = tuple(map(torch.from_numpy, (x, mean, variance)))
    of_jax = tuple(map(jax.numpy.asarray, (x, mean, variance)))
    program = bngrad.compile(GRADIENT)
    compiled = jax.jit(lambda x, mean, variance: bngrad.jax.batch_norm_backward(x, x, mean, variance=variance))
    epsilons = iter(range(1, 10**9))
    numpy_call = lambda x, mean, variance, **options: bngrad.batch_norm_backward(x, x, mean, variance=variance, **options)
    op = lambda x, mean, variance: torch.ops.bngrad.batch_norm_backward(x, x, mean, variance=variance)

    def in_forward_mode():
        with torch.autograd.forward_ad.dual_level():
            op(torch.autograd.forward_ad.make_dual(of_torch[0], of_torch[0]), *of_torch[1:])

    def with_a_new_type():
        numpy_call(type("Local", (Exporter,), {})(x), mean, variance)

    return {
        "numpy": lambda: numpy_call(x, mean, variance),
        "another epsilon": lambda: numpy_call(x, mean, variance, epsilon=1e-9 * next(epsilons)),
        "torch": lambda: numpy_call(*of_torch),
        "jax": lambda: numpy_call(*of_jax),
        "DLPack": lambda: numpy_call(Exporter(x), mean, variance),
        "another type": with_a_new_type,
        "out": lambda: numpy_call(*of_torch, out=(of_torch[0].clone(), None, None)),
        "an error": fails(lambda: numpy_call(x, mean[:2], variance)),
        "an error of DLPack": fails(lambda: numpy_call(Exporter(x), Exporter(mean[:1]), variance)),
        "a half": lambda: bngrad.batch_norm_backward_reduce(x, x, mean),
        "an op": lambda: op(*of_torch),
        "an error of an op": fails(lambda: op(of_torch[0], of_torch[1][:2], of_torch[2])),
        "forward mode": in_forward_mode,
        "a program": lambda: program(x, mean),
        "a program with torch": lambda: program(*of_torch[:2]),
        "an error of a program": fails(lambda: program(x, mean[:2])),
        "a copy of a program": lambda: copy.copy(program)(x, mean),
        "a custom call": lambda: compiled(*of_jax),
    }


def get_bytes():
    """Of memory that is in use."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


KINDS = make_calls()
# They take most of the time.
SLOW = {"forward mode": 20, "another type": 5}


@pytest.mark.parametrize("kind", KINDS)
def test_memory(kind):
    call, count = KINDS[kind], CALLS // SLOW.get(kind, 1)
    for _ in range(min(3000, count)):
        call()
    before = get_bytes()
    for _ in range(count):
        call()
    assert get_bytes() - before < 2**20


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
