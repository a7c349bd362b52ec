"""libBNGradCompiler.so, through lib/Compiler/Library/ProgramLibrary.h."""

import contextlib
import ctypes
import functools
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

_ON_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


class _Take(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class _Text(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Request(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("text_size", ctypes.c_size_t), ("entry", ctypes.c_char_p),
                ("schedule", ctypes.c_char_p), ("chips", ctypes.c_char_p), ("cuda_library", ctypes.c_char_p),
                ("take", _Take)]


_ENTRIES = ("checked", "diagnose", "workspace", "infer")


class _Entries(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _ENTRIES]


class Failure(Exception):
    """Diagnostics of the compiler, as ProgramLibrary.h describes them."""

    def __init__(self, diagnostics: list[dict[str, Any]]):
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def _find(stem: str) -> str:
    """Returns the path of the shared library of the package whose name begins with `stem`."""
    folder = os.path.join(os.path.dirname(__file__), "_lib")
    names = [name for name in os.listdir(folder) if name.startswith(stem)] if os.path.isdir(folder) else []
    if not names:
        raise ImportError(f"bngrad_compiler: expected {stem} in {folder}, got none: "
                          "install the wheel of bngrad-compiler again", name="bngrad_compiler", path=folder)
    return os.path.join(folder, min(names))


def library_path() -> str:
    """Returns the path of libBNGradCompiler.so."""
    return _find("libBNGradCompiler.so")


def _cuda_path() -> str:
    return _find("libBNGradCudaRuntime.so")


@functools.cache
def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(library_path())
    library.bngradWatchForks.argtypes = []
    library.bngradWatchForks.restype = None
    library.bngradWatchForks()
    request = ctypes.POINTER(_Request)
    library.bngradCreateProgram.argtypes = [request, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Entries)]
    library.bngradDestroyProgram.argtypes = [ctypes.c_void_p]
    library.bngradDestroyProgram.restype = None
    library.bngradFreeText.argtypes = [ctypes.POINTER(_Text)]
    library.bngradFreeText.restype = None
    library.bngradPrintProgram.argtypes = [request, ctypes.c_char_p]
    library.bngradRunPasses.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                        ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, _Take]
    library.bngradCompilerVersion.argtypes = []
    library.bngradCompilerVersion.restype = ctypes.c_char_p
    return library


@functools.cache
def version() -> str:
    """Returns the version of the library."""
    text: bytes = _load().bngradCompilerVersion()
    return text.decode()


class _Result:
    """The text that a function of the library returns."""

    def __init__(self) -> None:
        self._text = _Text()
        self.take = _Take(ctypes.cast(_load().bngradTakeText, ctypes.c_void_p), ctypes.addressof(self._text))

    def get(self, status: int) -> str:
        try:
            text = ctypes.string_at(self._text.text, self._text.size).decode(errors="replace")
        finally:
            _load().bngradFreeText(ctypes.byref(self._text))
        if status != 0:
            raise Failure(json.loads(text))
        return text


def _make_request(result: _Result, text: bytes, entry: bytes | None, schedule: bytes | None,
                  chips: bytes | None) -> _Request:
    library = None if chips is None else os.fsencode(_cuda_path())
    return _Request(text, len(text), entry, schedule, chips, library, result.take)


def create(text: bytes, entry: bytes | None, schedule: bytes | None,
           chips: bytes | None) -> tuple[tuple[int, int], tuple[int, ...], dict[str, Any]]:
    """Compiles a program; `chips`: GPUs, or None for the CPU.

    Returns the function that frees it and the function's argument, the addresses of
    its entries, 0 where there is none, and its description. Raises Failure.
    """
    result, handle, entries = _Result(), ctypes.c_void_p(), _Entries()
    request = _make_request(result, text, entry, schedule, chips)
    status = _load().bngradCreateProgram(ctypes.byref(request), ctypes.byref(handle), ctypes.byref(entries))
    try:
        description: dict[str, Any] = json.loads(result.get(status))
    except BaseException:
        if handle.value is not None:
            _load().bngradDestroyProgram(handle)
        raise
    addresses = tuple(getattr(entries, name) or 0 for name in _ENTRIES)
    assert handle.value is not None
    destroy = ctypes.cast(_load().bngradDestroyProgram, ctypes.c_void_p).value
    assert destroy is not None
    return (destroy, handle.value), addresses, description


def print_program(text: bytes, entry: bytes | None, schedule: bytes | None, chips: bytes | None, form: bytes) -> str:
    """Returns the program in one of the forms of bngradPrintProgram. Raises Failure."""
    result = _Result()
    request = _make_request(result, text, entry, schedule, chips)
    return result.get(_load().bngradPrintProgram(ctypes.byref(request), form))


def run_passes(text: bytes, pipeline: bytes | None, passes: Sequence[bytes]) -> str:
    """Returns the module after a pipeline, or after passes. Raises Failure."""
    result = _Result()
    array = (ctypes.c_char_p * len(passes))(*passes)
    return result.get(_load().bngradRunPasses(text, len(text), pipeline, array, len(passes), result.take))


@functools.cache
def _load_cuda() -> ctypes.CDLL:
    library = ctypes.CDLL(_cuda_path())
    library.bngradCudaSetThreadErrorHandler.argtypes = [_ON_ERROR, ctypes.c_void_p]
    library.bngradCudaSetThreadErrorHandler.restype = None
    library.bngradCudaGetCapability.argtypes = []
    library.bngradCudaTakeStatus.argtypes = []
    return library


@contextlib.contextmanager
def cuda_errors() -> Iterator[list[str]]:
    """Collects the errors of CUDA in this thread."""
    texts: list[str] = []

    def add(text: bytes, _user: int | None) -> None:
        texts.append(text.decode(errors="replace"))

    library, function = _load_cuda(), _ON_ERROR(add)
    library.bngradCudaSetThreadErrorHandler(function, None)
    try:
        yield texts
    finally:
        library.bngradCudaSetThreadErrorHandler(_ON_ERROR(), None)


def check_device() -> str:
    """Returns the reason why there is no GPU to run on, or an empty text."""
    with cuda_errors() as texts:
        capability = _load_cuda().bngradCudaGetCapability()
        _load_cuda().bngradCudaTakeStatus()
    return "" if capability else "; ".join(texts) or "an unknown error"
