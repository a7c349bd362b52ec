"""enable(), disable() and enabled()."""

import collections
import contextlib
import ctypes
import itertools
import threading
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import torch

from . import _devices, _inductor, _library_handle, _synced

_library = torch.library.Library("bngrad", "FRAGMENT")
for _function in (_library_handle.bngradTorchGetError,
                  _library_handle.bngradTorchGetKey,
                  _library_handle.bngradTorchGetPass,
                  _library_handle.bngradTorchGetReplaced):
    _function.restype = ctypes.c_char_p


def _find_running_statistics(mean, variance, epsilon: float):
    """What ATen's kernels for GPUs save in evaluation."""
    dtype = torch.promote_types(mean.dtype, torch.float32)
    return (mean.to(dtype, copy=True),
            (variance.to(dtype) + epsilon).rsqrt())


_library.define("_running_statistics(Tensor mean, Tensor variance, "
                "float epsilon) -> (Tensor, Tensor)")
_library.impl("_running_statistics", _find_running_statistics, "CUDA")


def _list_names(function) -> list[str]:
    """The names that `function` returns for 0, 1, ..., before None."""
    names = map(function, itertools.count())
    return [name.decode() for name in itertools.takewhile(bool, names)]


def _verify_device(arguments) -> bool:
    """Whether the C library can compute on the arguments' device."""
    return _devices.can_compute(next(each.device for each in arguments
                                     if isinstance(each, torch.Tensor)))


def _run_native_backward(input, grad_output, weight, running_mean, running_var,
                         mean, inv_std, epsilon, reserve):
    """cuDNN's gradient of a forward pass by bngrad, whose reserve space is
    empty: cuDNN may refuse that."""
    return torch.ops.aten.native_batch_norm_backward(
        grad_output, input, weight, running_mean, running_var, mean, inv_std,
        True, epsilon, [True] * 3)


# The ops that _Original has defined.
_defined: set[str] = set()


class _Original:
    """PyTorch's kernel of an op, such as "native_batch_norm.out", for a dispatch
    key."""

    def __init__(self, name: str, key: str) -> None:
        self.op = "aten::" + name
        self.key = key
        # Other threads may still run a kernel that was just removed, and call
        # PyTorch's.
        self.kernel = None
        self.removed: collections.deque = collections.deque(maxlen=64)
        # What the kernels do not cover comes back to PyTorch's own one through
        # this op.
        packet, _, overload = name.partition(".")
        if name not in _defined:
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            _library.define("_original_" +
                            str(op._schema).removeprefix("aten::"))
            _defined.add(name)
        _library.impl("_original_" + name, self.call, key, with_keyset=True)

    def call(self, keyset, *arguments, **given):
        _verify_device(arguments)
        try:
            if (self.op == "aten::cudnn_batch_norm_backward"
                    and arguments[-1].numel() == 0):
                return _run_native_backward(*arguments)
            return self.kernel.call_boxed(keyset, *arguments, **given)
        except Exception as error:
            _library_handle.bngradTorchSetError(str(error).encode())
            raise

    def find(self):
        """The kernel in PyTorch's table."""
        return torch.library.get_kernel(self.op, self.key)


class _PythonKernel:
    """A function of _synced in place of PyTorch's kernel."""

    def __init__(self, name: str, key: str, function: Callable) -> None:
        self.op = "aten::" + name
        self.key = key
        self.function = function
        self.original = None

    def call(self, keyset, *arguments, **given):
        if _verify_device(arguments):
            # What the C library refuses, PyTorch computes, or says why not.
            with contextlib.suppress(RuntimeError):
                results = self.function(*arguments, **given)
                if results is not None:
                    return results
        return self.original.call_boxed(keyset, *arguments, **given)

    def replace(self, library: torch.library.Library) -> None:
        self.original = torch.library.get_kernel(self.op, self.key)
        library.impl(self.op, self.call, self.key, with_keyset=True,
                     allow_override=True)


class _Pass:
    """The kernels of PyTorch for a pass of batch norms and a dispatch key, which
    bngrad replaces together. The C library knows the pass by its number."""

    def __init__(self, number: int, name: str, key: str) -> None:
        self.number = number
        self.name = name
        self.device = key.lower()
        self.is_replaced = False
        self.originals = [
            _Original(each, key) for each in _list_names(lambda place: (
                _library_handle.bngradTorchGetReplaced(number, place)))
        ]
        self.python_kernels = [
            _PythonKernel(op, key, function)
            for op, function in _synced.KERNELS.get((name, key), {}).items()
        ]
        self.library: torch.library.Library | None = None

    def check(self, status: int) -> None:
        if status != 0:
            text = _library_handle.bngradTorchGetError().decode()
            raise RuntimeError(f"bngrad.torch: the {self.name} pass of batch "
                               f"norms on {self.device}: {text}")

    def update(self, is_wanted: bool) -> None:
        """Replaces the kernels, or restores PyTorch's."""
        if is_wanted and not self.is_replaced:
            for each in self.originals:
                each.kernel = each.find()
            self.check(_library_handle.bngradTorchEnable(self.number))
            self.is_replaced = True
            for each in self.originals:
                each.removed.append(each.find())
            self.library = torch.library.Library("aten", "IMPL")
            for each in self.python_kernels:
                each.replace(self.library)
        elif not is_wanted and self.is_replaced:
            self.check(_library_handle.bngradTorchDisable(self.number))
            self.is_replaced = False
            self.library = None  # removes its kernels


# PyTorch has no kernels to replace on devices for which it was not built.
_passes = {
    (name, key.lower()): _Pass(number, name, key)
    for number, (name, key) in enumerate(zip(
        _list_names(_library_handle.bngradTorchGetPass),
        _list_names(_library_handle.bngradTorchGetKey)))
    if key == "CPU" or torch.version.cuda
}

# The types of devices on which batch norms can be replaced.
DEVICES = ("cpu", "cuda")


class _Options(NamedTuple):
    forward: bool
    compile: bool
    devices: frozenset[str]


_lock = threading.Lock()
# One entry per enable() that disable() has not undone.
_active: list[_Options] = []


def _find_compiled_state(device: str) -> _inductor.State:
    compiled = [
        each for each in _active if each.compile and device in each.devices
    ]
    if any(each.forward for each in compiled):
        return _inductor.State.FORWARD_AND_GRADIENT
    return (_inductor.State.GRADIENT if compiled else _inductor.State.NOTHING)


def _update() -> None:
    """Brings PyTorch's state in line with _active."""
    for (name, device), each in _passes.items():
        each.update(any(device in options.devices and
                        (options.forward or name != "forward")
                        for options in _active))
    _inductor.set_states({device: _find_compiled_state(device)
                          for _, device in _passes})


def _make_options(forward: bool, compile: bool,
                  devices: Collection[str]) -> _Options:
    if isinstance(devices, str) or not set(devices) <= set(DEVICES):
        raise ValueError(f"devices: expected a collection of {DEVICES}, got "
                         f"{devices!r}")
    return _Options(forward, compile, frozenset(devices))


def enable(*, forward: bool = True, compile: bool = False,
           devices: Collection[str] = DEVICES) -> None:
    """Makes PyTorch compute batch norms by bngrad.

    It replaces the kernels of all batch norms of aten for dense tensors on CPUs
    and CUDA devices, which docs/python-torch.md lists: every
    `torch.nn.BatchNorm*` and `torch.nn.functional.batch_norm` calls one, in
    training and in evaluation. Data of f16, bf16, f32 and f64 of every shape and
    layout are covered, with batch or running statistics; the rest goes to
    PyTorch's own kernels, whose errors become a RuntimeError. Other devices,
    sparse tensors, tensor subclasses, autocast and grad mode are untouched, and
    second derivatives are PyTorch's.

    The replacement affects the whole process and is counted: it lasts until
    `disable()` has been called as often as `enable()`. Several threads may call
    both at any time. A batch norm that runs meanwhile is computed by the kernel
    with which it has started.

    Args:
      forward: also the forward pass; otherwise, only the gradient.
      compile: also in graphs that torch.compile compiles from now on: keeps
        the gradient and, in training, the forward pass whole, instead of
        decomposing them, and makes a ReLU that follows, and a residual before
        it, parts of both.
        Graphs that were compiled before do not change.
      devices: the types of devices, "cpu" and "cuda". Kernels for CUDA devices
        are only replaced in builds of PyTorch that have them.

    Raises:
      ValueError: for another device.
      RuntimeError: PyTorch refused to replace a kernel, or the C library cannot
        run here, as with a value of BNGRAD_ISA that this CPU lacks.
    """
    options = _make_options(forward, compile, devices)
    with _lock:
        _active.append(options)
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
def enabled(*, forward: bool = True, compile: bool = False,
            devices: Collection[str] = DEVICES) -> Iterator[None]:
    """Calls `enable()` on entry and `disable()` on exit; also a decorator.

    Raises:
      RuntimeError: PyTorch refused to replace a kernel, or on exit: more
        calls of `disable()` within than of `enable()`.
    """
    options = _make_options(forward, compile, devices)
    enable(forward=forward, compile=compile, devices=devices)
    try:
        yield
    finally:
        with _lock:
            if options not in _active:
                raise RuntimeError(
                    "bngrad.torch: disable() without enable() in enabled()")
            _active.remove(options)
            _update()
