"""Programs of bngrad.jax for CUDA, which are lowered without a GPU.

REQUIRES: jax, flax
RUN: %python -m pytest -q %s
"""

import functools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import data, loss_of, mesh  # before JAX is imported

import jax
import jax.numpy as jnp
import pytest
from bngrad.jax import _calls
from jax import export
from jax.sharding import PartitionSpec as P

import bngrad.jax as bj

TARGETS = ["bngrad." + op for op in _calls._OPS]
CHECKS = [export.DisabledSafetyCheck.custom_call(target) for target in TARGETS]
GRADIENT = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))


def lower(function, *arguments, platform="cuda"):
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def find_calls(text):
    """The lines of custom calls, by op."""
    return {name: line for line in text.splitlines() for name in re.findall(r"custom_call @bngrad\.(\w+)\(", line)}


def call_all(x, vector, sums, count=6):
    dims = {"feature_dims": (2,)}
    return (bj.batch_norm_backward(x, x, vector, variance=vector, **dims),
            bj.batch_norm_backward_reduce(x, x, vector, **dims),
            bj.batch_norm_backward_elemt(x, x, vector, sums, count, variance=vector, **dims),
            bj.batch_norm_training(x, **dims), bj.batch_norm_inference(x, vector, variance=vector, **dims))


def test_custom_calls():
    """All ops, with row-major data in device memory."""
    x, vector, sums = (jnp.ones(shape, "float32") for shape in ((2, 3, 4), 4, (2, 4)))
    calls = find_calls(lower(call_all, x, vector, sums))
    assert sorted(calls) == sorted(_calls._OPS)
    row_major = {3: "dense<[2, 1, 0]> : tensor<3xindex>", 2: "dense<[1, 0]> : tensor<2xindex>",
                 1: "dense<0> : tensor<1xindex>"}
    for line in calls.values():
        operands, results = re.search(r" : \((.*)\) -> \(?(.*?)\)?$", line).groups()
        for name, types in (("operand", operands), ("result", results)):
            ranks = [type.count("x") for type in re.findall(r"tensor<([^>]*)>", types)]
            expected = ", ".join(row_major[rank] for rank in ranks)
            assert f"{name}_layouts = [{expected}]" in line, line
        assert "rank = 3 : i64" in line and "feature_dims = dense<2> : tensor<1xi64>" in line
    assert "has_count = true" in calls["batch_norm_backward_elemt"]
    assert find_calls(lower(call_all, x, vector, sums, platform="rocm")) == {}


@pytest.mark.parametrize("has_x64", [True, False])
def test_count_is_two_halves(has_x64):
    x, vector, sums = (jnp.ones(shape, "float32") for shape in ((2, 3, 4), 4, (2, 4)))

    def lower_count(count):
        return lower(functools.partial(call_all, x, vector, sums), count)

    with jax.enable_x64(has_x64) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(has_x64):
        text = lower(functools.partial(call_all, count=2**40 + 6), x, vector, sums)
        assert "dense<[6, 256]> : tensor<2xi32>" in text
        for count in (jnp.int32(6), *([jnp.int64(6)] if has_x64 else [])):
            text = lower_count(count)
            assert find_calls(text)["batch_norm_backward_elemt"].count("tensor<2xi32>") == 1
            assert ("bitcast_convert" in text) == (count.dtype == jnp.int64)


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map(check_vma):
    """Each device calls the halves with its part, and psum adds the sums between them."""
    function = jax.shard_map(
        functools.partial(bj.batch_norm, axis_name="d"), mesh=mesh(), in_specs=(P("d"), P(), P()),
        out_specs=(P("d"), P(), P()), check_vma=check_vma)
    text = lower(jax.grad(loss_of(function), (0, 1, 2)), *data("float32"))
    for line in find_calls(text).values():
        assert "tensor<2x6x5x4xf32>" in line and "tensor<8x6x5x4xf32>" not in line
    places = [text.index("@bngrad." + op) for op in ("batch_norm_backward_reduce", "batch_norm_backward_elemt")]
    assert "all_reduce" in text[places[0]:places[1]]


def test_flax():
    import flax.linen as nn
    from bngrad.flax import BatchNorm

    x = jnp.ones((4, 5, 3))
    model = BatchNorm(use_running_average=False)
    variables = model.init(jax.random.key(0), x)

    def loss(parameters, x):
        return model.apply(variables | {"params": parameters}, x, mutable=["batch_stats"])[0].sum()

    calls = find_calls(lower(jax.grad(loss), variables["params"], x))
    assert sorted(calls) == ["batch_norm_backward", "batch_norm_training"]
    assert isinstance(model, nn.Module)


def test_export():
    arguments = data("float32")
    exported = export.export(GRADIENT, platforms=["cuda"], disabled_checks=CHECKS)(*arguments)
    loaded = export.deserialize(exported.serialize())
    assert loaded.platforms == ("cuda",)
    assert "@bngrad.batch_norm_backward(" in loaded.mlir_module()
    both = export.export(GRADIENT, platforms=["cpu", "cuda"], disabled_checks=CHECKS)(*arguments)
    assert both.mlir_module().count("custom_call @bngrad.batch_norm_backward(") == 2
    shapes = export.symbolic_args_specs((arguments[0], *arguments[1:3], arguments[0]),
                                        ("n, h, 5, c", "c", "c", "n, h, 5, c"))
    symbolic = export.export(GRADIENT, platforms=["cuda"], disabled_checks=CHECKS)(*shapes)
    assert "@bngrad.batch_norm_backward(" in symbolic.mlir_module()


def test_registration():
    """JAX's plugin for CUDA, once it is loaded, gets both stages of each handler."""
    program = """
import bngrad.jax
from bngrad.jax import _calls
from jaxlib import xla_client
seen = {}
xla_client.register_custom_call_handler(
    "CUDA", lambda name, handlers, platform, version, traits=0: seen.update({name: (sorted(handlers), version, traits)}))
ours = {name: value for name, value in seen.items() if "bngrad" in str(name)}
assert ours == {"bngrad." + op: (["execute", "initialize"], 1, 0) for op in _calls._OPS}, ours
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_of_cuda_is_loaded():
    program = """
import jax, jax.numpy as jnp, bngrad.jax as bj
import bngrad.flax
jax.jit(jax.grad(lambda x: bj.batch_norm(x, jnp.ones(5))[0][0].sum()))(jnp.ones((4, 3, 5)))
files = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
assert any("libbngrad_jax" in file for file in files), files
assert not [file for file in files if "cuda" in file.lower()], files
"""
    subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
