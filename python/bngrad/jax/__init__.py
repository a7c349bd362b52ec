"""Gradients of batch normalization in JAX.

On CPUs they are XLA custom calls, `bngrad.batch_norm_backward` and its halves,
elsewhere formulas of jax.numpy. All functions work under `jax.jit`, `jax.grad`,
`jax.vmap`, `jax.shard_map` and `jax.export`; docs/python.md describes them.
"""

from .. import _library

_library.find_framework("bngrad.jax", "jax", "JAX", (0, 6))

from ._batch_norm import batch_norm  # noqa: E402
from ._calls import register as _register  # noqa: E402
from ._gradients import batch_norm_backward, batch_norm_backward_elemt, batch_norm_backward_reduce  # noqa: E402

__all__ = ["batch_norm", "batch_norm_backward", "batch_norm_backward_elemt", "batch_norm_backward_reduce"]

_register()
