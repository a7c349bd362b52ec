# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""bngrad.jax in exported programs, with donated buffers, on threads, and without x64."""

import concurrent.futures
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import assert_close, backward, data, loss_of  # before JAX is imported

import jax
import numpy as np
import pytest
from jax import export

import bngrad.jax as bj

TARGETS = ["bngrad.batch_norm_training", "bngrad.batch_norm_backward", "bngrad.batch_norm_backward_reduce",
           "bngrad.batch_norm_backward_elemt"]


def test_export():
    arguments = data("float32")
    gradient = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))
    checks = [export.DisabledSafetyCheck.custom_call(target) for target in TARGETS]
    with pytest.raises(ValueError, match="bngrad.batch_norm_"):
        export.export(gradient)(*arguments)
    for platforms in (["cpu"], ["cpu", "cuda"]):
        exported = export.export(gradient, disabled_checks=checks, platforms=platforms)(*arguments)
        assert "@bngrad.batch_norm_backward(" in exported.mlir_module()
        loaded = export.deserialize(exported.serialize())
        for one, other in zip(jax.jit(loaded.call)(*arguments), gradient(*arguments)):
            np.testing.assert_array_equal(one, other)
    # Elsewhere there is no custom call.
    rocm = export.export(gradient, platforms=["rocm"])(*arguments)
    assert "bngrad.batch_norm_" not in rocm.mlir_module()


def test_export_of_symbolic_sizes():
    x, scale, bias, weight = data("float32")
    shapes = export.symbolic_args_specs((x, scale, bias, x), ("n, h, 5, c", "c", "c", "n, h, 5, c"))
    gradient = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))
    exported = export.export(gradient, disabled_checks=[
        export.DisabledSafetyCheck.custom_call(target) for target in TARGETS])(*shapes)
    assert_close(exported.call(x, scale, bias, weight), gradient(x, scale, bias, weight), 1e-5)
    assert_close(exported.call(x[:3], scale, bias, weight[:3]), gradient(x[:3], scale, bias, weight[:3]), 1e-5)


def test_donated_buffers():
    x, scale, bias, dy = data()
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    expected = backward(dy, x, mean, scale, variance, None)
    donating = jax.jit(lambda dy, x: backward(dy, x, mean, scale, variance, None), donate_argnums=(0, 1))
    copies = dy + 0, x + 0
    for one, other in zip(donating(*copies), expected):
        np.testing.assert_array_equal(one, other)


def test_without_x64():
    program = """
import jax, jax.numpy as jnp, numpy as np, bngrad.jax as bj
x = jnp.arange(24.).reshape(2, 3, 4) ** 2
y, mean, variance = bj.batch_norm(x, jnp.ones(4), jnp.zeros(4))
assert y.dtype == mean.dtype == jnp.float32
sums = bj.batch_norm_backward_reduce(x, x, mean, feature_dims=(2,))
for count in (6, 2**40, jnp.int32(6)):
    bj.batch_norm_backward_elemt(x, x, mean, sums, count, variance=variance, feature_dims=(2,))
jax.grad(lambda x: bj.batch_norm(x)[0][0].sum())(x)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


BITS = """
import hashlib, jax, jax.numpy as jnp, numpy as np, bngrad.jax as bj
generator = np.random.default_rng(0)
digest = hashlib.sha256()
for shape, dim in (((8, 24, 56, 56), 1), ((8, 56, 56, 24), 3), ((40000, 33), 1), ((64, 3, 5), 1)):
    for type in ("float32", "bfloat16"):
        x, dy = (jnp.asarray(generator.standard_normal(shape), type) for _ in range(2))
        mean = variance = jnp.full(shape[dim], 0.7)
        for value in bj.batch_norm_backward(dy, x, mean, variance=variance, feature_dims=(dim,)):
            digest.update(np.asarray(value).tobytes())
        sums = bj.batch_norm_backward_reduce(dy, x, mean, feature_dims=(dim,))
        digest.update(np.asarray(sums).tobytes())
        digest.update(np.asarray(bj.batch_norm_backward_elemt(
            dy, x, mean, sums, 77, variance=variance, feature_dims=(dim,))).tobytes())
print(digest.hexdigest())
"""


def test_threads_do_not_change_bits():
    def run(threads):
        environment = os.environ | {"NPROC": str(threads), "XLA_FLAGS": ""}
        return subprocess.run([sys.executable, "-c", BITS], check=True, capture_output=True, text=True,
                              env=environment).stdout
    assert len({run(threads) for threads in (1, 2, 5, 16)}) == 1


def test_busy_pool():
    """Many calls at once, more than the pool has threads."""
    x, scale, bias, dy = data("float32", (16, 32, 32, 24))
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    function = jax.jit(lambda dy, x: backward(dy, x, mean, scale, variance, None))
    expected = [np.asarray(value) for value in function(dy, x)]
    # Independent calls in one execution, too.
    many = jax.jit(lambda dy, x: [backward(dy + i - i, x, mean, scale, variance, None) for i in range(8)])

    def work(index):
        for _ in range(20):
            for result in ([function(dy, x)], many(dy, x))[index % 2]:
                for one, other in zip(result, expected):
                    np.testing.assert_array_equal(one, other)

    with concurrent.futures.ThreadPoolExecutor(12) as executor:
        list(executor.map(work, range(12)))


def test_import_compiles_nothing():
    program = """
import time, jax
from jax import monitoring
events = []
monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: events.append(name))
start = time.process_time()
import bngrad.jax
assert time.process_time() - start < 0.5, time.process_time() - start
assert not [name for name in events if "compile" in name or "jaxpr" in name], events
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
