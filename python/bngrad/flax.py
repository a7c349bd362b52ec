"""Batch normalization for flax that is computed, like its gradient, by the C library."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from . import _library

_library.find_framework("bngrad.flax", "flax", "flax", (0, 10))

import flax.linen as nn  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from flax import nnx  # noqa: E402
from flax.linen import dtypes  # noqa: E402

from .jax import _batch_norm  # noqa: E402

__all__ = ["BatchNorm", "NnxBatchNorm"]

_COVERED = ("float16", "bfloat16", "float32", "float64")


def _find_feature_dims(axis, rank):
    """Those of flax's `axis`; None: it is no dim."""
    try:
        axes = [operator.index(each) for each in (axis if isinstance(axis, Iterable) else (axis,))]
    except TypeError:
        return None
    if any(not -rank <= each < rank for each in axes):
        return None
    return tuple(sorted({each % rank for each in axes}))


def _is_number(value):
    """Whether a value is known, finite and not negative."""
    try:
        return not isinstance(value, jax.core.Tracer) and 0 <= float(value) < math.inf
    except (TypeError, ValueError):
        return False


def _is_covered(module, x):
    """Whether bngrad.jax computes the batch normalization. Flax computes all others, and
    reports errors."""
    types = (x.dtype, module.dtype, module.param_dtype)
    return (bool(_find_feature_dims(module.axis, x.ndim))
            and all(jnp.dtype(type).name in _COVERED for type in types if type is not None)
            and _is_number(module.epsilon))


def _normalize(module, x, scale, bias, statistics, mask, axis_name):
    """y, mean and variance; `statistics`: the latter, or None."""
    dims = _find_feature_dims(module.axis, x.ndim)
    sizes = tuple(x.shape[dim] for dim in dims)
    dtype = dtypes.canonicalize_dtype(x, scale, bias, dtype=module.dtype)
    vectors = jax.tree.map(lambda vector: jnp.asarray(vector).reshape(sizes), (scale, bias, *(statistics or (None, None))))
    type = jnp.promote_types(dtype, jnp.float32)
    for value in jax.tree.leaves((x, vectors)):
        type = jnp.promote_types(type, value.dtype)
    if statistics:
        # Those of a mask or of several devices are not computed.
        mask = axis_name = None
    if mask is not None:
        mask = jnp.asarray(mask, bool)
    return _batch_norm.normalize(
        x, *vectors, mask, feature_dims=dims, epsilon=float(module.epsilon), axis_name=axis_name,
        axis_index_groups=module.axis_index_groups, dtype=dtype, type=type)


def _update(module: Any, running: jax.Array, value: jax.Array, x: jax.Array, is_wide: bool = True) -> jax.Array:
    """The running average, of flax's type; `is_wide`: at least f32."""
    type = jnp.dtype(x.dtype if module.dtype is None else module.dtype)
    if is_wide:
        type = jnp.promote_types(type, jnp.float32)
    return module.momentum * running + (1 - module.momentum) * value.astype(type)


def _promote_dtype(values, *, dtype):
    return dtypes.promote_dtype(*values, dtype=dtype)


class BatchNorm(nn.BatchNorm):
    """`flax.linen.BatchNorm` with the kernels of `bngrad.jax.batch_norm`.

    It has the fields, arguments, variables and results of `flax.linen.BatchNorm`,
    except that the variance is always computed in two passes, and in f32 at
    least: as with `use_fast_variance=False` and `force_float32_reductions=True`.
    Types other than f16, bf16, f32 and f64 are left to flax.
    """

    @nn.compact
    def __call__(
        self,
        x: jax.Array,
        use_running_average: bool | None = None,
        *,
        mask: jax.Array | None = None,
    ) -> jax.Array:
        x = jnp.asarray(x)
        if not _is_covered(self, x):
            return super().__call__(x, use_running_average, mask=mask)
        use_running_average = nn.merge_param(
            "use_running_average", self.use_running_average, use_running_average)
        shape = [x.shape[dim] for dim in _find_feature_dims(self.axis, x.ndim)]
        # Older versions of flax have no such field.
        forces_f32 = getattr(self, "force_float32_reductions", True)
        type = jnp.float32 if forces_f32 else self.param_dtype
        mean = self.variable("batch_stats", "mean", jnp.zeros, shape, type)
        variance = self.variable("batch_stats", "var", jnp.ones, shape, type)
        scale = bias = None
        if self.use_scale:
            scale = self.param("scale", self.scale_init, shape, self.param_dtype)
        if self.use_bias:
            bias = self.param("bias", self.bias_init, shape, self.param_dtype)
        is_initializing = self.is_initializing()
        y, new_mean, new_variance = _normalize(
            self, x, scale, bias, (mean.value, variance.value) if use_running_average else None, mask,
            None if is_initializing else self.axis_name)
        if not use_running_average and not is_initializing:
            for running, value in ((mean, new_mean), (variance, new_variance)):
                running.value = _update(self, running.value, value, x, forces_f32)
        return y


class NnxBatchNorm(nnx.BatchNorm):
    """`flax.nnx.BatchNorm` with the kernels of `bngrad.jax.batch_norm`.

    It differs from `flax.nnx.BatchNorm` as `BatchNorm` does from that of linen.
    """

    def __call__(
        self,
        x: jax.Array,
        use_running_average: bool | None = None,
        *,
        mask: jax.Array | None = None,
    ) -> jax.Array:
        x = jnp.asarray(x)
        use_running = self.use_running_average if use_running_average is None else use_running_average
        # Flax reports that neither was given.
        if use_running is None or not _is_covered(self, x):
            return super().__call__(x, use_running_average, mask=mask)
        scale = None if self.scale is None else self.scale[...]
        bias = None if self.bias is None else self.bias[...]
        # Flax 0.12.0 and older have no such field.
        promote = getattr(self, "promote_dtype", _promote_dtype)
        x, mean, variance, scale, bias = promote(
            (x, self.mean[...], self.var[...], scale, bias), dtype=self.dtype)
        y, new_mean, new_variance = _normalize(
            self, x, scale, bias, (mean, variance) if use_running else None, mask, self.axis_name)
        if not use_running:
            for running, value in ((self.mean, new_mean), (self.var, new_variance)):
                # As in flax, which has no gradient of variables that change in place.
                if getattr(running, "_can_update", False):
                    value = jax.lax.stop_gradient(value)
                running[...] = _update(self, running[...], value, x)
        return y
