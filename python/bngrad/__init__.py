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
    "Explanation", "ParameterError", "ShapeError", "StridesError",
    "__version__", "batch_norm_backward", "batch_norm_backward_elemt",
    "batch_norm_backward_reduce", "explain", "get_num_threads",
    "set_num_threads",
]


def __getattr__(name):
    # Few programs need them, and they take as long to import as all others.
    if name in ("Explanation", "explain"):
        from bngrad import _explain
        return getattr(_explain, name)
    raise AttributeError(f"module 'bngrad' has no attribute {name!r}")
