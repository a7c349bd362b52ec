"""Gradients of batch normalization, for numpy and arrays with DLPack.

bngrad.torch and bngrad.jax have those of PyTorch and JAX.
"""

from bngrad._errors import (CompilerNotFoundError, DeviceError, DtypeError,
                            Error, ParameterError, ShapeError, StridesError)
from bngrad._numpy import (__version__, batch_norm_backward,
                           batch_norm_backward_elemt,
                           batch_norm_backward_reduce, get_num_threads,
                           set_num_threads)

__all__ = [
    "CompilerNotFoundError", "DeviceError", "DtypeError", "Error",
    "ParameterError", "ShapeError", "StridesError", "__version__",
    "batch_norm_backward", "batch_norm_backward_elemt",
    "batch_norm_backward_reduce", "get_num_threads", "set_num_threads",
]
