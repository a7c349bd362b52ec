from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeVar, overload

from bngrad._compile import Diagnostic as Diagnostic
from bngrad._compile import Parameter as Parameter
from bngrad._compile import Program as Program
from bngrad._compile import compile as compile
from bngrad._compile import opt as opt
from bngrad._errors import CompileError as CompileError
from bngrad._errors import CompilerNotFoundError as CompilerNotFoundError
from bngrad._errors import DeviceError as DeviceError
from bngrad._errors import DtypeError as DtypeError
from bngrad._errors import Error as Error
from bngrad._errors import ParameterError as ParameterError
from bngrad._errors import ShapeError as ShapeError
from bngrad._errors import StridesError as StridesError

from bngrad._explain import Explanation as Explanation
from bngrad._explain import explain as explain

__all__ = [
    "CompileError", "CompilerNotFoundError", "DeviceError", "Diagnostic",
    "DtypeError", "Error", "Explanation", "Parameter", "ParameterError",
    "Program", "ShapeError", "StridesError", "__version__",
    "batch_norm_backward", "batch_norm_backward_elemt",
    "batch_norm_backward_reduce", "batch_norm_inference", "batch_norm_training",
    "compile", "explain", "get_num_threads", "opt", "set_num_threads",
]

__version__: str

class _Array(Protocol):
    def __dlpack__(self) -> Any: ...

_T = TypeVar("_T", bound=_Array)

_Result = Literal["output", "mean", "variance", "inv_std"]
_Gradient = Literal["grad_input", "grad_scale", "grad_offset"]
_Dims = SupportsIndex | Sequence[SupportsIndex]

@overload
def batch_norm_backward(
    grad_output: _T, input: _Array, mean: _Array, *,
    scale: _Array | None = None, variance: _Array | None = None,
    inv_std: _Array | None = None, epsilon: SupportsFloat = 0.0,
    mask: _Array | None = None, feature_dims: _Dims = (1,),
    statistics: Literal["batch", "global"] = "batch",
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
) -> tuple[_T, _T, _T]: ...
@overload
def batch_norm_backward(
    grad_output: _T, input: _Array, mean: _Array, *,
    scale: _Array | None = None, variance: _Array | None = None,
    inv_std: _Array | None = None, epsilon: SupportsFloat = 0.0,
    mask: _Array | None = None, feature_dims: _Dims = (1,),
    statistics: Literal["batch", "global"] = "batch",
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    wanted: Sequence[_Gradient],
) -> tuple[_T | None, _T | None, _T | None]: ...

def batch_norm_backward_reduce(
    grad_output: _T, input: _Array, mean: _Array, *,
    mask: _Array | None = None, feature_dims: _Dims = (1,),
    out: _Array | None = None,
) -> _T: ...

def batch_norm_backward_elemt(
    grad_output: _T, input: _Array, mean: _Array, sums: _Array,
    count: SupportsIndex, *,
    scale: _Array | None = None, variance: _Array | None = None,
    inv_std: _Array | None = None, epsilon: SupportsFloat = 0.0,
    mask: _Array | None = None, feature_dims: _Dims = (1,),
    out: _Array | None = None,
) -> _T: ...

@overload
def batch_norm_training(
    input: _T, *,
    scale: _Array | None = None, offset: _Array | None = None,
    epsilon: SupportsFloat = 1e-05, feature_dims: _Dims = (1,),
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
) -> tuple[_T, _T, _T, _T]: ...
@overload
def batch_norm_training(
    input: _T, *,
    scale: _Array | None = None, offset: _Array | None = None,
    epsilon: SupportsFloat = 1e-05, feature_dims: _Dims = (1,),
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    wanted: Sequence[_Result],
) -> tuple[_T | None, _T | None, _T | None, _T | None]: ...

def batch_norm_inference(
    input: _T, mean: _Array, *,
    scale: _Array | None = None, offset: _Array | None = None,
    variance: _Array | None = None, inv_std: _Array | None = None,
    epsilon: SupportsFloat = 0.0, feature_dims: _Dims = (1,),
    out: _Array | None = None,
) -> _T: ...

def get_num_threads() -> int: ...
def set_num_threads(count: SupportsIndex) -> None: ...
