"""Linear functions whose transpose is another function.

Forward mode applies the function, and reverse mode the transpose. It is as
`jax.custom_derivatives.linear_call`, which has neither `jax.vmap` nor derivatives
with respect to residuals.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


@dataclasses.dataclass(frozen=True)
class Linear:
    """A function that is linear in its tangents, and its transpose.

    apply_function: takes options, residuals and tangents. The result has the shape
      of the first tangent.
    transpose_function: takes options, residuals and the result's cotangent; returns a
      cotangent for each tangent.
    axis_names: the axes over whose devices it exchanges values.
    """

    apply_function: Callable
    transpose_function: Callable
    options: Any
    axis_names: tuple = ()

    def apply(self, residuals, tangents):
        return self.apply_function(self.options, residuals, tangents)

    def transpose(self, residuals, cotangent):
        return self.transpose_function(self.options, residuals, cotangent)


@dataclasses.dataclass(frozen=True)
class _Batch:
    """The same for a batch, whose dim is the first of tangents and results.

    axes: of the residuals; None if one serves the whole batch.
    """

    linear: Any
    axes: tuple
    size: int
    name: Any

    @property
    def axis_names(self):
        return self.linear.axis_names

    def _map(self, function, residuals, others):
        return jax.vmap(function, (self.axes, 0), axis_size=self.size, axis_name=self.name)(residuals, others)

    def apply(self, residuals, tangents):
        return self._map(self.linear.apply, residuals, tangents)

    def transpose(self, residuals, cotangent):
        return self._map(self.linear.transpose, residuals, cotangent)


_primitive = Primitive("bngrad_linear")
_primitive.multiple_results = True


def call(linear: Linear, residuals: tuple, tangents: tuple, dtype: Any) -> jax.Array:
    """`linear` of tuples of arrays and None; `dtype`: of the result."""
    arguments, structure = jax.tree.flatten((residuals, tangents))
    num_residuals = len(jax.tree.leaves(residuals))
    return _primitive.bind(*arguments, linear=linear, structure=structure, num_residuals=num_residuals,
                           dtype=jnp.dtype(dtype))[0]


def _apply(*arguments, linear, structure, num_residuals, dtype):
    return [linear.apply(*structure.unflatten(arguments)).astype(dtype)]


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _compiled(linear, structure, num_residuals, dtype, *arguments):
    return _apply(*arguments, linear=linear, structure=structure, num_residuals=num_residuals, dtype=dtype)


@_primitive.def_impl
def _(*arguments, linear, structure, num_residuals, dtype):
    return _compiled(linear, structure, num_residuals, dtype, *arguments)


@_primitive.def_abstract_eval
def _(*arguments, linear, structure, num_residuals, dtype):
    return [arguments[num_residuals].update(dtype=dtype, weak_type=False)]


def _differentiate(primals, moved, *, num_residuals, **parameters):
    bind = functools.partial(_primitive.bind, num_residuals=num_residuals, **parameters)
    changes = []
    if any(type(change) is not ad.Zero for change in moved[num_residuals:]):
        changes += bind(*primals[:num_residuals], *map(ad.instantiate_zeros, moved[num_residuals:]))
    # Masks have no derivative.
    free = [index for index in range(num_residuals) if type(moved[index]) is not ad.Zero and
            jnp.issubdtype(primals[index].dtype, jnp.inexact)]
    if free:
        def function(*values):
            arguments = list(primals)
            for index, value in zip(free, values):
                arguments[index] = value
            return _apply(*arguments, num_residuals=num_residuals, **parameters)[0]

        changes.append(jax.jvp(function, [primals[index] for index in free], [moved[index] for index in free])[1])
    return bind(*primals), [sum(changes[1:], changes[0])]


def _transpose(cotangents, *arguments, linear, structure, num_residuals, dtype):
    results = [None] * len(arguments)
    if type(cotangents[0]) is ad.Zero:
        return results
    residuals, tangents = structure.unflatten(arguments)
    results[num_residuals:] = jax.tree.leaves(linear.transpose(residuals, cotangents[0]))
    return [result if ad.is_undefined_primal(argument) else None for result, argument in zip(results, arguments)]


def _batch(data, arguments, dims, *, linear, structure, num_residuals, dtype):
    bind = functools.partial(_primitive.bind, structure=structure, num_residuals=num_residuals, dtype=dtype)
    if all(dim is None for dim in dims) and data.name not in linear.axis_names:
        return bind(*arguments, linear=linear), [None]

    def move(value, dim):
        if dim is None:
            return jnp.broadcast_to(value, (data.size, *value.shape))
        return jnp.moveaxis(value, dim, 0)

    tangents = map(move, arguments[num_residuals:], dims[num_residuals:])
    # None also for absent operands.
    axes = structure.unflatten(dims)[0]
    results = bind(*arguments[:num_residuals], *tangents, linear=_Batch(linear, axes, data.size, data.name))
    return results, [0]


ad.primitive_jvps[_primitive] = _differentiate
ad.primitive_transposes[_primitive] = _transpose
batching.fancy_primitive_batchers[_primitive] = _batch
mlir.register_lowering(_primitive, mlir.lower_fun(_apply, multiple_results=True))
