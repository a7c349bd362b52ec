"""Exceptions of bngrad."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Error(RuntimeError):
    """An error of BNGrad.

    status: the name of the C library's status, such as "BNGRAD_BAD_SHAPE".
    """

    status: str

    def __init__(self, message: str, status: str = "BNGRAD_INTERNAL_ERROR"):
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (*self.args, self.status)


class ParameterError(Error, ValueError):
    """An option out of range, an overlap, or memory that cannot be written."""


class DtypeError(Error, TypeError):
    """An argument or element of the wrong type."""


class ShapeError(Error, ValueError):
    """A rank or size that is not the expected one."""


class StridesError(Error, ValueError):
    """An output two elements of which share an address."""


class DeviceError(Error, ValueError):
    """Data that are not on the CPU."""


class CompilerNotFoundError(Error, ImportError):
    """A gradient without a ready kernel or a program, and no compiler."""


class CompileError(Error, ValueError):
    """A program, or passes, that the compiler rejects.

    diagnostics: all its messages, a tuple of bngrad.Diagnostic.
    """

    diagnostics: tuple[Any, ...]

    def __init__(self, message: str, diagnostics: tuple[Any, ...] = (), status: str = "BNGRAD_BAD_PARAM"):
        super().__init__(message, status)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (*self.args, self.diagnostics, self.status)


_CLASSES = {
    "BNGRAD_BAD_PARAM": ParameterError,
    "BNGRAD_NULL_POINTER": ParameterError,
    "BNGRAD_BAD_DTYPE": DtypeError,
    "BNGRAD_BAD_SHAPE": ShapeError,
    "BNGRAD_BAD_STRIDES": StridesError,
    "BNGRAD_DEVICE_NOT_SUPPORTED": DeviceError,
    "BNGRAD_COMPILER_NOT_FOUND": CompilerNotFoundError,
}


def make_error(status: str, message: str) -> Error:
    """Returns the exception for a status of the C library."""
    return _CLASSES.get(status, Error)(message, status)
