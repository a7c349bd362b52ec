"""Batch normalization and its gradients, for numpy and arrays with DLPack.

bngrad.torch and bngrad.jax are for PyTorch and JAX. With the package
bngrad-compiler, bngrad.compile compiles programs of MLIR.
"""

import os as _os
import threading as _threading
from importlib import import_module as _import_module

from bngrad._errors import (CompileError, CompilerNotFoundError, DeviceError,
                            DtypeError, Error, ParameterError, ShapeError,
                            StridesError)

try:
    from bngrad._numpy import (__version__, batch_norm_backward,
                               batch_norm_backward_elemt,
                               batch_norm_backward_reduce,
                               batch_norm_inference, batch_norm_training,
                               get_num_threads, set_num_threads)
except ImportError as error:
    raise ImportError(
        f"bngrad: cannot load the extension module bngrad._numpy: {error}: install the wheel for this "
        "Python", name="bngrad._numpy", path=error.path) from None

__all__ = [
    "CompileError", "CompilerNotFoundError", "DeviceError", "Diagnostic",
    "DtypeError", "Error", "Explanation", "Parameter", "ParameterError",
    "Program", "ShapeError", "StridesError", "__version__",
    "batch_norm_backward", "batch_norm_backward_elemt",
    "batch_norm_backward_reduce", "batch_norm_inference", "batch_norm_training",
    "compile", "explain", "get_num_threads", "opt", "set_num_threads",
]

# Held while a thread imports parts of the package that few programs need, so that a fork waits for it. Python's own
# lock of a module would stay taken in the child.
_import_lock = _threading.RLock()
_os.register_at_fork(before=_import_lock.acquire, after_in_parent=_import_lock.release,
                     after_in_child=_import_lock.release)

# Few programs need these, and importing them takes longer than all others.
_MODULES = {
    "bngrad._compile": ("Diagnostic", "Parameter", "Program", "compile", "opt"),
    "bngrad._explain": ("Explanation", "explain"),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            with _import_lock:
                loaded = _import_module(module)
            globals().update((each, getattr(loaded, each)) for each in names)
            return globals()[name]
    raise AttributeError(f"module 'bngrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
