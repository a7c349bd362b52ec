"""Gradients of batch normalization, for numpy and arrays with DLPack.

bngrad.torch and bngrad.jax have those of PyTorch and JAX. With the package
bngrad-compiler, bngrad.compile compiles programs of MLIR.
"""

from bngrad._errors import (CompileError, CompilerNotFoundError, DeviceError,
                            DtypeError, Error, ParameterError, ShapeError,
                            StridesError)
from bngrad._numpy import (__version__, batch_norm_backward,
                           batch_norm_backward_elemt,
                           batch_norm_backward_reduce, get_num_threads,
                           set_num_threads)

__all__ = [
    "CompileError", "CompilerNotFoundError", "DeviceError", "Diagnostic",
    "DtypeError", "Error", "Parameter", "ParameterError", "Program",
    "ShapeError", "StridesError", "__version__", "batch_norm_backward",
    "batch_norm_backward_elemt", "batch_norm_backward_reduce", "compile",
    "get_num_threads", "opt", "set_num_threads",
]

_OF_COMPILER = ("Diagnostic", "Parameter", "Program", "compile", "opt")


def __getattr__(name: str) -> object:
    # What they import takes several times as long as the rest.
    if name not in _OF_COMPILER:
        raise AttributeError(f"module 'bngrad' has no attribute {name!r}")
    from bngrad import _compile
    for lazy in _OF_COMPILER:
        globals()[lazy] = getattr(_compile, lazy)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
