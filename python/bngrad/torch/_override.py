"""enable(), disable() and enabled()."""

import collections
import contextlib
import ctypes
import threading
from collections.abc import Iterator

import torch

from . import _inductor, _library_handle

_OP = "aten::native_batch_norm_backward"

# The arguments of aten::native_batch_norm_backward that the kernels do not
# cover come back to PyTorch's own kernel through this op.
_library = torch.library.Library("bngrad", "FRAGMENT")
_library.define(
    "_original_native_batch_norm_backward" +
    str(torch.ops.aten.native_batch_norm_backward.default._schema).removeprefix(
        _OP))

_library_handle.bngradTorchGetError.restype = ctypes.c_char_p
_lock = threading.Lock()
# One entry per enable() that disable() has not undone: its `compile`.
_active: list[bool] = []
_is_replaced = False
# Other threads may still run a kernel that was just removed, and call this one.
_original = None
_removed = collections.deque(maxlen=64)


def _call_original(keyset, *arguments):
    try:
        return _original.call_boxed(keyset, *arguments)
    except Exception as error:
        _library_handle.bngradTorchSetError(str(error).encode())
        raise


_library.impl("_original_native_batch_norm_backward", _call_original, "CPU",
              with_keyset=True)


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"bngrad.torch: {_OP}: {_library_handle.bngradTorchGetError().decode()}")


def _update() -> None:
    """Brings PyTorch's state in line with _active."""
    global _original, _is_replaced
    if _active and not _is_replaced:
        _original = torch.library.get_kernel(_OP, "CPU")
        _check(_library_handle.bngradTorchEnable())
        _is_replaced = True
        _removed.append(torch.library.get_kernel(_OP, "CPU"))
    elif not _active and _is_replaced:
        _check(_library_handle.bngradTorchDisable())
        _is_replaced = False
    _inductor.set_active(any(_active))


def enable(*, compile: bool = False) -> None:
    """Makes PyTorch compute the gradients of batch norms on CPUs by bngrad.

    It replaces the kernel of `aten::native_batch_norm_backward` for dense
    tensors on CPUs, which every `torch.nn.BatchNorm*` and
    `torch.nn.functional.batch_norm` calls in its backward pass. Data of f16,
    bf16, f32 and f64 of every shape and layout are covered, with batch or
    running statistics; the rest goes to PyTorch's own kernel, errors included.
    Other devices, sparse tensors, tensor subclasses, autocast and grad mode
    are untouched, and second derivatives are PyTorch's.

    The replacement affects the whole process and is counted: it lasts until
    `disable()` has been called as often as `enable()`. Several threads may call
    both at any time. A gradient that runs meanwhile is computed by the kernel
    with which it has started.

    Args:
      compile: also keeps the gradient whole in graphs that torch.compile
        compiles from now on, instead of decomposing it, and gives it the mask
        of a ReLU before it. Graphs that were compiled before do not change.

    Raises:
      RuntimeError: PyTorch refused to replace the kernel, or the C library cannot
        run here, as with a value of BNGRAD_ISA that this CPU lacks.
    """
    with _lock:
        _active.append(compile)
        try:
            _update()
        except BaseException:
            _active.pop()
            raise


def disable() -> None:
    """Undoes the last `enable()`.

    Raises:
      RuntimeError: there is none to undo.
    """
    with _lock:
        if not _active:
            raise RuntimeError("bngrad.torch: disable() without enable()")
        _active.pop()
        _update()


@contextlib.contextmanager
def enabled(*, compile: bool = False) -> Iterator[None]:
    """Calls `enable()` on entry and `disable()` on exit; also a decorator.

    Raises:
      RuntimeError: PyTorch refused to replace the kernel, or on exit: more
        calls of `disable()` within than of `enable()`.
    """
    enable(compile=compile)
    try:
        yield
    finally:
        with _lock:
            if compile not in _active:
                raise RuntimeError(
                    "bngrad.torch: disable() without enable() in enabled()")
            _active.remove(compile)
            _update()
