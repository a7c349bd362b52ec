"""The forward pass, with the arguments of `bngrad` for numpy."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array
from jax.typing import ArrayLike

from . import _calls, _gradients


def batch_norm_training(
    input: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    epsilon: float = 1e-5,
    feature_dims: int | Sequence[int] = (1,),
    wanted: Sequence[str] | None = None,
) -> tuple[Array | None, Array | None, Array | None, Array | None]:
    """Batch normalization with the statistics of input.

    JAX differentiates the formula; the gradients of `batch_norm` are computed by
    the C library.

    Args:
      input: any shape of rank 1 or more; f16, bf16, f32 or f64.
      scale: the sizes of the feature dims; any of these types; None: 1.
      offset: shape and type of scale; None: 0.
      epsilon: is added to the variance.
      feature_dims: dims of input, ascending; negative ones count from the end.
      wanted: names of the results that are computed; None: all.

    Returns:
      output, shape and type of input; mean, variance, which is biased, and
      inv_std, 1 / sqrt(variance + epsilon): f32, or f64 if an argument is of f64.
      None for results that are not wanted.

    Raises:
      TypeError: a type; ValueError: a shape or an option. The text names the
      argument, the expected and the actual value.
    """
    operands, dims = _gradients.prepare(feature_dims, input=input, scale=scale, offset=offset)
    op = "batch_norm_training"
    names = _calls.get_wanted(op)
    if isinstance(wanted, str):
        raise TypeError("wanted: expected names of results, got str")
    selected = names if wanted is None else tuple(wanted)
    listed = ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
    for name in selected:
        if name not in names:
            raise ValueError(f"wanted: expected {listed}, got {name!r}")
    if not selected:
        raise ValueError(f"wanted: expected {listed}, got none")
    options = _calls.Options(
        dims, _gradients.check_epsilon(epsilon), wanted=tuple(name in selected for name in names))
    results = iter(_calls.call(op, options, operands))
    return tuple(next(results) if name in selected else None for name in names)


def batch_norm_inference(
    input: ArrayLike,
    mean: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    inv_std: ArrayLike | None = None,
    epsilon: float = 0.0,
    feature_dims: int | Sequence[int] = (1,),
) -> Array:
    """Batch normalization with given statistics.

    JAX differentiates the formula; the gradients of `batch_norm` are computed by
    the C library.

    Args:
      input: any shape of rank 1 or more; f16, bf16, f32 or f64.
      mean: the sizes of the feature dims; any of these types.
      scale, offset: shape and type of mean; None: 1 and 0.
      variance: shape and type of mean; either this or `inv_std`.
      inv_std: 1 / sqrt(variance + epsilon).
      epsilon: is added to the variance; 0 with an `inv_std`.
      feature_dims: dims of input, ascending; negative ones count from the end.

    Returns:
      output, shape and type of input.

    Raises:
      TypeError, ValueError: as `batch_norm_training`.
    """
    statistic = _gradients.find_statistic(variance, inv_std, epsilon)
    operands, dims = _gradients.prepare(
        feature_dims, input=input, mean=mean, scale=scale, offset=offset, variance=variance, inv_std=inv_std)
    return _calls.call("batch_norm_inference", _calls.Options(dims, **statistic), operands)[0]
