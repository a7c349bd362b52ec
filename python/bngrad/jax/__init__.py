"""Batch normalization and its gradients in JAX.

On CPUs and on CUDA they are XLA custom calls, such as `bngrad.batch_norm_training` and
`bngrad.batch_norm_backward`, elsewhere formulas of jax.numpy. All functions work under `jax.jit`, `jax.grad`,
`jax.vmap`, `jax.shard_map` and `jax.export`; docs/python-jax.md describes them.
"""

from .. import _library

_library.find_framework("bngrad.jax", "jax", "JAX", (0, 6))

from ._batch_norm import batch_norm  # noqa: E402
from ._calls import register as _register  # noqa: E402
from ._forward import batch_norm_inference, batch_norm_training  # noqa: E402
from ._gradients import batch_norm_backward, batch_norm_backward_elemt, batch_norm_backward_reduce  # noqa: E402

__all__ = ["batch_norm", "batch_norm_backward", "batch_norm_backward_elemt", "batch_norm_backward_reduce",
           "batch_norm_inference", "batch_norm_training"]

_register()
