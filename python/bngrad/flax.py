"""Batch normalization for flax whose gradient is computed by the C library."""

from __future__ import annotations

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


def _is_covered(x, *types):
    """Whether batch normalization of these types has a gradient here."""
    return x.ndim > 0 and all(jnp.dtype(each).name in _COVERED for each in (x.dtype, *types) if each is not None)


def _find_feature_dims(axis, rank):
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted({int(each) % rank for each in axes}))


def _normalize(x, scale, bias, statistics, mask, **keywords):
    """y, mean and variance; `statistics`: the latter, or None."""
    mean, variance = statistics or (None, None)
    x, scale, bias, mean, variance = jax.tree.map(jnp.asarray, (x, scale, bias, mean, variance))
    type = jnp.float32
    for value in jax.tree.leaves((x, scale, bias, mean, variance)):
        type = jnp.promote_types(type, value.dtype)
    if mask is not None:
        mask = jnp.asarray(mask, bool)
    return _batch_norm.normalize(x, scale, bias, mean, variance, mask, type=type, **keywords)


def _update(running: Any, momentum: float, value: jax.Array, x: jax.Array, dtype: Any) -> jax.Array:
    """The running average, of flax's type."""
    type = jnp.promote_types(x.dtype if dtype is None else dtype, jnp.float32)
    return momentum * running + (1 - momentum) * value.astype(type)


def _promote_dtype(values, *, dtype):
    return dtypes.promote_dtype(*values, dtype=dtype)


class BatchNorm(nn.BatchNorm):
    """`flax.linen.BatchNorm` with the gradient of `bngrad.jax.batch_norm`.

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
        if not _is_covered(x, self.dtype, self.param_dtype):
            return super().__call__(x, use_running_average, mask=mask)
        use_running_average = nn.merge_param(
            "use_running_average", self.use_running_average, use_running_average)
        dims = _find_feature_dims(self.axis, x.ndim)
        shape = [x.shape[dim] for dim in dims]
        forces_f32 = getattr(self, "force_float32_reductions", True)
        type = jnp.float32 if forces_f32 else self.param_dtype
        mean = self.variable("batch_stats", "mean", jnp.zeros, shape, type)
        variance = self.variable("batch_stats", "var", jnp.ones, shape, type)
        scale = bias = None
        if self.use_scale:
            scale = self.param("scale", self.scale_init, shape, self.param_dtype)
        if self.use_bias:
            bias = self.param("bias", self.bias_init, shape, self.param_dtype)
        y, new_mean, new_variance = _normalize(
            x, scale, bias,
            (mean.value, variance.value) if use_running_average else None,
            None if use_running_average else mask,
            feature_dims=dims,
            epsilon=self.epsilon,
            axis_name=None if self.is_initializing() else self.axis_name,
            axis_index_groups=self.axis_index_groups,
            dtype=dtypes.canonicalize_dtype(x, scale, bias, dtype=self.dtype))
        if not use_running_average and not self.is_initializing():
            mean.value = _update(mean.value, self.momentum, new_mean, x, self.dtype)
            variance.value = _update(variance.value, self.momentum, new_variance, x, self.dtype)
        return y


class NnxBatchNorm(nnx.BatchNorm):
    """`flax.nnx.BatchNorm` with the gradient of `bngrad.jax.batch_norm`.

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
        if use_running is None or not _is_covered(x, self.dtype, self.param_dtype):
            return super().__call__(x, use_running_average, mask=mask)
        scale = None if self.scale is None else self.scale[...]
        bias = None if self.bias is None else self.bias[...]
        # Flax 0.12.0 and older have no such field.
        promote = getattr(self, "promote_dtype", _promote_dtype)
        x, mean, variance, scale, bias = promote(
            (x, self.mean[...], self.var[...], scale, bias), dtype=self.dtype)
        y, new_mean, new_variance = _normalize(
            x, scale, bias,
            (mean, variance) if use_running else None,
            None if use_running else mask,
            feature_dims=_find_feature_dims(self.axis, x.ndim),
            epsilon=self.epsilon,
            axis_name=self.axis_name,
            axis_index_groups=self.axis_index_groups,
            dtype=dtypes.canonicalize_dtype(x, scale, bias, dtype=self.dtype))
        if not use_running:
            for running, value in ((self.mean, new_mean), (self.var, new_variance)):
                running[...] = jax.lax.stop_gradient(
                    _update(running[...], self.momentum, value, x, self.dtype))
        return y
