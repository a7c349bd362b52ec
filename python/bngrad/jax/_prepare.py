"""Ops for which the C library may have no kernel.

Whether it has one is found while a program is lowered for a CPU or for CUDA, and a
kernel that must be compiled is compiled then. For each platform, a program has the
custom call or the formulas, not both.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding, PartitionSpec as P

from .. import _library

_NAMES = {"float16": b"f16", "bfloat16": b"bf16", "float32": b"f32", "float64": b"f64", "bool": b"bool"}
# Stands for a size that is symbolic. Kernels depend on sizes only if these are 0 or 1.
_ANY_SIZE = 2


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int),
                ("sizes", ctypes.POINTER(ctypes.c_int64))]


class _Request(ctypes.Structure):
    _fields_ = [("op", ctypes.c_char_p), ("is_cuda", ctypes.c_int), ("device", ctypes.c_int),
                ("epsilon", ctypes.c_double), ("is_global", ctypes.c_int), ("is_inv_std", ctypes.c_int),
                ("num_feature_dims", ctypes.c_int), ("feature_dims", ctypes.POINTER(ctypes.c_int64)),
                ("num_tensors", ctypes.c_int), ("tensors", ctypes.POINTER(_Tensor))]


@functools.cache
def load() -> ctypes.CDLL:
    """The library with the handlers."""
    return _library.load("bngrad.jax", "libbngrad_jax.so", "JAX")


def _integers(values):
    return (ctypes.c_int64 * len(values))(*values)


def _find_gpu():
    """The number of a GPU that JAX uses; None if it uses none."""
    try:
        return jax.local_devices(backend="cuda")[0].local_hardware_id
    except RuntimeError:
        return None


def has_kernel(platform: str, op: str, options: Any, tensors: dict) -> bool:
    """Whether the library computes an op of row-major tensors, whose shapes and types are given by name.

    A program for CUDA that is lowered without a GPU is for another machine, where the
    library is assumed to have a compiler.
    """
    gpu = _find_gpu() if platform == "cuda" else None
    described = (_Tensor * len(tensors))()
    for target, (name, tensor) in zip(described, tensors.items()):
        sizes = [size if isinstance(size, int) else _ANY_SIZE for size in tensor.shape]
        target.name, target.dtype, target.rank = name.encode(), _NAMES[tensor.dtype.name], len(sizes)
        target.sizes = _integers(sizes)
    request = _Request(
        op.encode(), platform == "cuda", gpu or 0, options.epsilon, options.statistics == "global",
        options.statistic == "inv_std", len(options.feature_dims), _integers(options.feature_dims), len(tensors),
        described)
    text = ctypes.create_string_buffer(1024)
    found = load().bngradJaxPrepare(ctypes.byref(request), text, ctypes.c_size_t(len(text)))
    if found < 0:
        raise RuntimeError(f"{op}: {text.value.decode()}")
    return gpu is None if found == 2 else bool(found)


def _map(function, values, batch_rank):
    """`function` over the first dims of arrays; a size of 1 there serves the whole batch."""
    if batch_rank == 0:
        return function(*values)
    axes = [None if value.shape[0] == 1 else 0 for value in values]
    values = [value[0] if axis is None else value for value, axis in zip(values, axes)]
    inner = functools.partial(_map, function, batch_rank=batch_rank - 1)
    if all(axis is None for axis in axes):
        return [jnp.expand_dims(result, 0) for result in inner(values)]
    return jax.vmap(lambda *values: inner(values), axes)(*values)


class Checked:
    """A call by one of two functions of op, options and operands.

    has_kernel: takes a platform, op, options and operands without the dims of a batch,
      of which it uses shapes and types; returns whether `kernel` computes them there.
    kernel: takes a platform before the others.
    formula: for everything else.
    """

    def __init__(self, has_kernel: Callable, kernel: Callable, formula: Callable):
        self._has_kernel = has_kernel
        self._kernel, self._formula = kernel, formula
        primitive = self._primitive = Primitive("bngrad_checked")
        primitive.multiple_results = True
        compiled = functools.partial(jax.jit, static_argnums=0)(
            lambda parameters, *values: primitive.bind(*values, **dict(parameters)))
        primitive.def_impl(lambda *values, **parameters: compiled(tuple(parameters.items()), *values))
        primitive.def_abstract_eval(self._describe)
        batching.primitive_batchers[primitive] = self._batch
        mlir.register_lowering(primitive, functools.partial(self._lower, None))
        for platform in ("cpu", "cuda"):
            mlir.register_lowering(primitive, functools.partial(self._lower, platform), platform=platform)

    def call(self, op: str, options: Any, operands: dict) -> tuple:
        return tuple(self._primitive.bind(*operands.values(), op=op, options=options, names=tuple(operands),
                                          rank=operands["input"].ndim))

    def _compute(self, platform, *values, op, options, names, rank):
        """By the kernel of a platform, or by the formula if it is None."""
        function = self._formula if platform is None else functools.partial(self._kernel, platform)
        batch_rank = values[names.index("input")].ndim - rank
        return list(_map(lambda *values: function(op, options, dict(zip(names, values))), values, batch_rank))

    def _describe(self, *values, names, **parameters):
        input = values[names.index("input")]
        described = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values]
        results = jax.eval_shape(
            functools.partial(self._compute, None, names=names, **parameters), *described)
        # They vary over the same axes of a `shard_map` as input.
        return [input.update(shape=result.shape, dtype=result.dtype, weak_type=False, sharding=NamedSharding(
            input.sharding.mesh, P(*[None] * len(result.shape)))) for result in results]

    def _batch(self, values, dims, **parameters):
        values = [jnp.expand_dims(value, 0) if dim is None else jnp.moveaxis(value, dim, 0)
                  for value, dim in zip(values, dims)]
        results = self._primitive.bind(*values, **parameters)
        return results, [0] * len(results)

    def _lower(self, platform, context, *values, op, options, names, rank):
        described = dict(zip(names, context.avals_in))
        batch_rank = described["input"].ndim - rank
        described = {name: jax.ShapeDtypeStruct(value.shape[batch_rank:], value.dtype)
                     for name, value in described.items()}
        if platform is not None and not self._has_kernel(platform, op, options, described):
            platform = None
        function = mlir.lower_fun(functools.partial(self._compute, platform), multiple_results=True)
        return function(context, *values, op=op, options=options, names=names, rank=rank)
