"""enable(), disable() and enabled()."""

import collections
import contextlib
import ctypes
import itertools
import threading
from collections.abc import Iterator
from typing import NamedTuple

import torch

from . import _inductor, _library_handle

_library = torch.library.Library("bngrad", "FRAGMENT")
for _function in (_library_handle.bngradTorchGetError,
                  _library_handle.bngradTorchGetPass,
                  _library_handle.bngradTorchGetReplaced):
    _function.restype = ctypes.c_char_p


def _list_names(function) -> list[str]:
    """The names that `function` returns for 0, 1, ..., before None."""
    names = map(function, itertools.count())
    return [name.decode() for name in itertools.takewhile(bool, names)]


class _Original:
    """PyTorch's kernel of an op on CPUs, such as "native_batch_norm.out"."""

    def __init__(self, name: str) -> None:
        self.op = "aten::" + name
        # Other threads may still run a kernel that was just removed, and call
        # PyTorch's.
        self.kernel = None
        self.removed: collections.deque = collections.deque(maxlen=64)
        # What the kernels do not cover comes back to PyTorch's own one through
        # this op.
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        _library.define("_original_" + str(op._schema).removeprefix("aten::"))
        _library.impl("_original_" + name, self.call, "CPU", with_keyset=True)

    def call(self, keyset, *arguments, **given):
        try:
            return self.kernel.call_boxed(keyset, *arguments, **given)
        except Exception as error:
            _library_handle.bngradTorchSetError(str(error).encode())
            raise

    def find(self):
        """The kernel in PyTorch's table."""
        return torch.library.get_kernel(self.op, "CPU")


class _Pass:
    """The kernels of PyTorch on CPUs for a pass of batch norms, which bngrad
    replaces together. The C library knows the pass by its number."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.is_replaced = False
        self.originals = [
            _Original(each) for each in _list_names(lambda place: (
                _library_handle.bngradTorchGetReplaced(number, place)))
        ]

    def check(self, status: int) -> None:
        if status != 0:
            text = _library_handle.bngradTorchGetError().decode()
            raise RuntimeError(
                f"bngrad.torch: the {self.name} pass of batch norms: {text}")

    def update(self, is_wanted: bool) -> None:
        """Replaces the kernels, or restores PyTorch's."""
        if is_wanted and not self.is_replaced:
            for each in self.originals:
                each.kernel = each.find()
            self.check(_library_handle.bngradTorchEnable(self.number))
            self.is_replaced = True
            for each in self.originals:
                each.removed.append(each.find())
        elif not is_wanted and self.is_replaced:
            self.check(_library_handle.bngradTorchDisable(self.number))
            self.is_replaced = False


_passes = {
    name: _Pass(number, name)
    for number, name in enumerate(_list_names(
        _library_handle.bngradTorchGetPass))
}


class _Options(NamedTuple):
    forward: bool
    compile: bool


_lock = threading.Lock()
# One entry per enable() that disable() has not undone.
_active: list[_Options] = []


def _find_compiled_state() -> _inductor.State:
    compiled = [each for each in _active if each.compile]
    if any(each.forward for each in compiled):
        return _inductor.State.FORWARD_AND_GRADIENT
    return (_inductor.State.GRADIENT if compiled else _inductor.State.NOTHING)


def _update() -> None:
    """Brings PyTorch's state in line with _active."""
    _passes["backward"].update(bool(_active))
    _passes["forward"].update(any(each.forward for each in _active))
    _inductor.set_state(_find_compiled_state())


def enable(*, forward: bool = True, compile: bool = False) -> None:
    """Makes PyTorch compute batch norms on CPUs by bngrad.

    It replaces the kernels of all batch norms of aten for dense tensors on CPUs,
    which docs/python-torch.md lists: every `torch.nn.BatchNorm*` and
    `torch.nn.functional.batch_norm` calls one, in training and in evaluation.
    Data of f16, bf16, f32 and f64 of every shape and layout are covered, with
    batch or running statistics; the rest goes to PyTorch's own kernels, whose
    errors become a RuntimeError. Other devices, sparse tensors, tensor
    subclasses, autocast and grad mode are untouched, and second derivatives are
    PyTorch's.

    The replacement affects the whole process and is counted: it lasts until
    `disable()` has been called as often as `enable()`. Several threads may call
    both at any time. A batch norm that runs meanwhile is computed by the kernel
    with which it has started.

    Args:
      forward: also the forward pass; otherwise, only the gradient.
      compile: also in graphs that torch.compile compiles from now on: keeps
        the gradient and, in training, the forward pass whole, instead of
        decomposing them, and gives the gradient the mask of a ReLU before it.
        Graphs that were compiled before do not change.

    Raises:
      RuntimeError: PyTorch refused to replace a kernel, or the C library cannot
        run here, as with a value of BNGRAD_ISA that this CPU lacks.
    """
    with _lock:
        _active.append(_Options(forward, compile))
        try:
            _update()
        except BaseException:
            _active.pop()
            _update()  # One kernel may have been replaced.
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
def enabled(*, forward: bool = True,
            compile: bool = False) -> Iterator[None]:
    """Calls `enable()` on entry and `disable()` on exit; also a decorator.

    Raises:
      RuntimeError: PyTorch refused to replace a kernel, or on exit: more
        calls of `disable()` within than of `enable()`.
    """
    options = _Options(forward, compile)
    enable(forward=forward, compile=compile)
    try:
        yield
    finally:
        with _lock:
            if options not in _active:
                raise RuntimeError(
                    "bngrad.torch: disable() without enable() in enabled()")
            _active.remove(options)
            _update()
