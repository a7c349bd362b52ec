"""The gradient and its halves, with the arguments of `bngrad` for numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from . import _calls

_NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "bool"}
_PARAMETERS = ("mean", "scale", "offset", "variance", "inv_std")


def find_feature_dims(feature_dims: int | Sequence[int], rank: int, of: str = "input") -> tuple[int, ...]:
    """Feature dims from 0; negative ones count from the end."""
    given = (feature_dims,) if isinstance(feature_dims, (int, np.integer)) else tuple(feature_dims)
    if rank == 0:
        raise ValueError(f"{of}: expected rank of at least 1, got 0")
    if not given:
        raise ValueError("feature_dims: expected at least one dim, got none")
    for dim in given:
        if not -rank <= dim < rank:
            raise ValueError(
                f"feature_dims: expected dims of {of}, {-rank} to {rank - 1}, got {dim}")
    dims = tuple(int(dim) % rank for dim in given)
    for last, dim in zip(dims, dims[1:]):
        if dim <= last:
            raise ValueError(f"feature_dims: expected ascending dims, got {dim} after {last}")
    return dims


def check_epsilon(epsilon: float) -> float:
    epsilon = float(epsilon)
    if not math.isfinite(epsilon) or epsilon < 0:
        raise ValueError(f"epsilon: expected it to be finite and at least 0, got {epsilon:g}")
    return epsilon


def _name(dtype):
    return _NAMES.get(dtype.name, dtype.name)


def check_float(name: str, value: Array) -> None:
    if value.dtype.name not in _NAMES or value.dtype == bool:
        raise TypeError(f"{name}: expected dtype f16, bf16, f32 or f64, got {_name(value.dtype)}")


def _check_dtypes(operands):
    for name, value in operands.items():
        if name == "mask":
            if value.dtype != bool:
                raise TypeError(f"mask: expected dtype bool, got {_name(value.dtype)}")
            continue
        check_float(name, value)
        if name == "sums":
            expected = jnp.promote_types(operands["input"].dtype, jnp.float32)
            if value.dtype != expected:
                raise TypeError(f"sums: expected dtype {_name(expected)}, got {_name(value.dtype)}")
            continue
        other = "input"
        if name in _PARAMETERS:
            other = next(each for each in _PARAMETERS if each in operands)
        expected = operands[other].dtype
        if value.dtype != expected:
            raise TypeError(
                f"{name}: expected the dtype of {other}, {_name(expected)}, got {_name(value.dtype)}")


def check_shape(name: str, shape: tuple, input: Array, dims: Sequence[int], of: str = "input") -> None:
    """Checks that `shape` has the sizes of `dims` of input."""
    if len(shape) != len(dims):
        rank = f"that of {of}" if len(dims) == input.ndim else "the number of feature dims"
        raise ValueError(f"{name}: expected rank {len(dims)}, {rank}, got {len(shape)}")
    for place, dim in enumerate(dims):
        if shape[place] != input.shape[dim]:
            raise ValueError(
                f"{name}: expected dim {place} to have the size of dim {dim} of {of}, "
                f"{input.shape[dim]}, got {shape[place]}")


def _check_sums(shape, input, dims):
    expected = (2, *(input.shape[dim] for dim in dims))
    if shape != expected:
        raise ValueError(f"sums: expected shape {expected}, 2 and the sizes of the feature dims, got {shape}")


def prepare(feature_dims: int | Sequence[int], **operands: ArrayLike | None) -> tuple[dict, tuple[int, ...]]:
    """Operands as arrays, which have been checked, and the feature dims."""
    arrays = {name: jnp.asarray(value) for name, value in operands.items() if value is not None}
    input = arrays["input"]
    dims = find_feature_dims(feature_dims, input.ndim)
    _check_dtypes(arrays)
    for name, value in arrays.items():
        if name == "sums":
            _check_sums(value.shape, input, dims)
        else:
            is_data = name in ("grad_output", "input", "mask")
            check_shape(name, value.shape, input, range(input.ndim) if is_data else dims)
    for name in ("variance", "inv_std"):
        if name in arrays:
            arrays["statistic"] = arrays.pop(name)
    return arrays, dims


def find_statistic(variance: ArrayLike | None, inv_std: ArrayLike | None, epsilon: float) -> dict:
    """The options statistic and epsilon."""
    if (variance is None) == (inv_std is None):
        got = "neither" if variance is None else "both"
        raise ValueError(f"variance, inv_std: expected one of them, got {got}")
    epsilon = check_epsilon(epsilon)
    if inv_std is not None and epsilon != 0:
        raise ValueError(f"epsilon: expected 0 with an inv_std, which contains it, got {epsilon:g}")
    return {"statistic": "variance" if inv_std is None else "inv_std", "epsilon": epsilon}


def batch_norm_backward(
    grad_output: ArrayLike,
    input: ArrayLike,
    mean: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    inv_std: ArrayLike | None = None,
    epsilon: float = 0.0,
    mask: ArrayLike | None = None,
    feature_dims: int | Sequence[int] = (1,),
    statistics: str = "batch",
    wanted: tuple[bool, bool, bool] = (True, True, True),
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradient of batch normalization.

    Args:
      grad_output: the gradient of the output, any shape of rank 1 or more.
      input: the same shape and type: f16, bf16, f32 or f64.
      mean: the sizes of the feature dims; any of these types.
      scale: shape and type of mean; None: 1.
      variance: shape and type of mean; either this or `inv_std`.
      inv_std: 1 / sqrt(variance + epsilon).
      epsilon: is added to the variance; 0 with an inv_std.
      mask: bool, the shape of input; where it is false, grad_output counts as 0.
      feature_dims: dims of input, ascending; negative ones count from the end.
      statistics: "batch", mean and variance are those of this input, or
        "global", they are constants.
      wanted: whether grad_input, grad_scale and grad_offset are computed.

    Returns:
      grad_input, shape and type of input; grad_scale and grad_offset, shape and
      type of mean; None for unwanted ones. docs/numerics.md bounds
      their errors. They can be differentiated.

    Raises:
      TypeError: a type; ValueError: a shape or an option. The text names the
      argument, the expected and the actual value.
    """
    statistic = find_statistic(variance, inv_std, epsilon)
    if statistics not in ("batch", "global"):
        raise ValueError(f"statistics: expected 'batch' or 'global', got {statistics!r}")
    wanted = tuple(bool(each) for each in wanted)
    if len(wanted) != 3 or not any(wanted):
        raise ValueError("wanted: expected grad_input, grad_scale or grad_offset to be wanted, "
                         f"got {wanted}")
    operands, dims = prepare(
        feature_dims, grad_output=grad_output, input=input, scale=scale, mean=mean, variance=variance,
        inv_std=inv_std, mask=mask)
    options = _calls.Options(dims, statistics=statistics, wanted=wanted, **statistic)
    results = iter(_calls.call("batch_norm_backward", options, operands))
    return tuple(next(results) if each else None for each in wanted)


def batch_norm_backward_reduce(
    grad_output: ArrayLike,
    input: ArrayLike,
    mean: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    feature_dims: int | Sequence[int] = (1,),
) -> Array:
    """The sums of the gradient with batch statistics, over this part of the data.

    The sums of all parts, by `jax.lax.psum`, are an operand of
    `batch_norm_backward_elemt`.

    Args and errors: as `batch_norm_backward`.

    Returns:
      Shape (2, sizes of the feature dims...), f32, or f64 for data of f64. Row 0
      has the sums of grad_output, that is, grad_offset; row 1 has the sums of
      grad_output * (input - mean), which times inv_std are grad_scale.
    """
    operands, dims = prepare(feature_dims, grad_output=grad_output, input=input, mean=mean, mask=mask)
    return _calls.call("batch_norm_backward_reduce", _calls.Options(dims), operands)[0]


def batch_norm_backward_elemt(
    grad_output: ArrayLike,
    input: ArrayLike,
    mean: ArrayLike,
    sums: ArrayLike,
    count: int | ArrayLike,
    *,
    scale: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    inv_std: ArrayLike | None = None,
    epsilon: float = 0.0,
    mask: ArrayLike | None = None,
    feature_dims: int | Sequence[int] = (1,),
) -> Array:
    """grad_input, from sums over the parts of the data that several processes have.

    Args:
      sums: of all parts; shape and type of `batch_norm_backward_reduce`.
      count: the number of elements per channel of all parts, at least 1: an int,
        or a scalar of int32 or int64.
      Others, and errors: as `batch_norm_backward`.

    Returns:
      grad_input of this part, shape and type of input.
    """
    statistic = find_statistic(variance, inv_std, epsilon)
    operands, dims = prepare(
        feature_dims, grad_output=grad_output, input=input, scale=scale, mean=mean, variance=variance,
        inv_std=inv_std, sums=sums, mask=mask)
    if isinstance(count, (int, np.integer)):
        if not 1 <= count < 2**63:
            raise ValueError(f"count: expected at least 1, got {count}")
        count = int(count)
    else:
        operands["count"] = jnp.asarray(count)
        type = operands["count"].dtype
        if type not in (jnp.int32, jnp.int64):
            raise TypeError(f"count: expected dtype int32 or int64, got {type.name}")
        if operands["count"].ndim:
            raise ValueError(f"count: expected rank 0, got {operands['count'].ndim}")
        count = -1
    options = _calls.Options(dims, count=count, **statistic)
    return _calls.call("batch_norm_backward_elemt", options, operands)[0]
