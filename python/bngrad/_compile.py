"""Programs of MLIR, compiled by the package bngrad-compiler."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from bngrad import _import_lock
from bngrad._errors import CompileError, CompilerNotFoundError, DeviceError, DtypeError, Error, ParameterError
from bngrad._numpy import Program as Function
from bngrad._numpy import __version__, check_cpu


class Diagnostic(NamedTuple):
    """A message of the compiler. `file` is empty and `line` 0 where it has no location."""

    severity: str
    file: str
    line: int
    column: int
    message: str
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        return "\n".join([f"{place}{self.severity}: {self.message}", *map(str, self.notes)])


class Parameter(NamedTuple):
    """An argument or result of a program.

    dtype: the type of elements in MLIR, such as "f32" or "i1".
    shape: None for a dynamic size, and for the shape of a scalar.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        sizes = "" if self.shape is None else "".join(f"{'?' if size is None else size}x" for size in self.shape)
        return f"{self.name}: {sizes}{self.dtype}"


def _find_compiler() -> Any:
    """Returns the module bngrad_compiler in the version of this package.

    Raises CompilerNotFoundError, or ParameterError for a value of BNGRAD_ISA that this CPU lacks.
    """
    try:
        with _import_lock:
            compiler = importlib.import_module("bngrad_compiler")
            version = compiler.version()  # loads the library
    except ModuleNotFoundError as error:
        if error.name != "bngrad_compiler":
            raise
        raise CompilerNotFoundError(
            f"expected the package bngrad-compiler, got none: install its wheel of version {__version__}, which "
            "scripts/wheels.sh builds", "BNGRAD_COMPILER_NOT_FOUND") from None
    if version != __version__:
        raise CompilerNotFoundError(
            f"expected bngrad-compiler {__version__}, the version of bngrad, got {version}: install the wheel "
            "of that version", "BNGRAD_COMPILER_NOT_FOUND")
    check_cpu()
    return compiler


def _make_diagnostic(fields: dict[str, Any]) -> Diagnostic:
    return Diagnostic(fields["severity"], fields["file"], fields["line"], fields["column"], fields["message"],
                      tuple(map(_make_diagnostic, fields["notes"])))


def _make_error(failure: Any) -> CompileError:
    diagnostics = tuple(map(_make_diagnostic, failure.diagnostics))
    errors = [str(diagnostic) for diagnostic in diagnostics if diagnostic.severity == "error"]
    return CompileError("\n".join(errors) or "expected a program that can be compiled, got an unknown error",
                        diagnostics)


def _get_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _encode_text(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise DtypeError(f"text: expected MLIR as str or bytes, got {_get_name(text)}", "BNGRAD_BAD_DTYPE")


def _encode(name: str, value: object) -> bytes:
    """Returns a string for C."""
    if not isinstance(value, str):
        raise DtypeError(f"{name}: expected str, got {_get_name(value)}", "BNGRAD_BAD_DTYPE")
    if "\0" in value:
        raise ParameterError(f"{name}: expected a text without null characters, got {value!r}", "BNGRAD_BAD_PARAM")
    return value.encode()


def _find_chips(target: str) -> bytes | None:
    """Returns the GPUs of a target, or None for the CPU."""
    encoded = _encode("target", target)
    if target == "cpu":
        return None
    if target == "cuda":
        return b"sm_90"
    if target.startswith("cuda:"):
        return encoded[len("cuda:"):]
    raise ParameterError(f"target: expected 'cpu', 'cuda', or with its GPUs such as 'cuda:sm_80', got {target!r}",
                         "BNGRAD_BAD_PARAM")


class Program:
    """A function of MLIR, compiled for this machine by bngrad.compile.

    A call takes an array for each tensor or memref, of numpy or any library with
    DLPack, on the CPU, row-major without gaps, and a number for each scalar.
    Elements of i1 are bool; integers may be signed or unsigned. It returns the
    result, a tuple of several, or None, as arrays of the library of the first
    array, or of numpy if there is none. An array for a memref may be written to.

    Calls run on the threads of bngrad (set_num_threads) and release Python's
    lock. Several threads may call at once. Programs are immutable: a copy is the
    program itself, and a pickled program is recompiled where it is loaded.

    Errors: DtypeError, ShapeError, StridesError and ParameterError, before
            anything is computed; DeviceError for target "cuda" without a GPU.

    entry: the name of the function.
    target: the target given to bngrad.compile.
    arguments, results: a tuple of Parameter.
    """

    entry: str
    target: str
    arguments: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    def __init__(self, text: str | bytes, *, entry: str | None = None, target: str = "cpu",
                 schedule: str | None = None):
        self._compiler = _find_compiler()
        self.target = target
        self._request = (_encode_text(text), None if entry is None else _encode("entry", entry),
                         None if schedule is None else _encode("schedule", schedule), _find_chips(target))
        try:
            code, addresses, description = self._compiler.create(*self._request)
        except self._compiler.Failure as failure:
            raise _make_error(failure) from None
        self.entry = description["entry"]
        parameters = [(fields["name"], fields["type"], fields["shape"], fields["is_result"], fields["is_written"])
                      for fields in description["parameters"]]
        self._call = Function(addresses, parameters, code)
        described = [Parameter(name, dtype, None if shape is None else
                               tuple(None if size < 0 else size for size in shape))
                     for name, dtype, shape, _, _ in parameters]
        count = sum(not is_result for *_, is_result, _ in parameters)
        self.arguments, self.results = tuple(described[:count]), tuple(described[count:])
        self._schedules: tuple[str, ...] | None = None
        self._has_device = False

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        text, entry, schedule, _ = self._request
        options = {"entry": None if entry is None else entry.decode(), "target": self.target,
                   "schedule": None if schedule is None else schedule.decode()}
        return _load, (type(self), text, options)

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function."""
        if self.target == "cpu":
            return self._call(*arguments)
        if not self._has_device:
            reason = self._compiler.check_device()
            if reason:
                raise DeviceError(f"target: expected an NVIDIA GPU and its driver, got none: {reason}",
                                  "BNGRAD_DEVICE_NOT_SUPPORTED")
            self._has_device = True
        with self._compiler.cuda_errors() as texts:
            try:
                return self._call(*arguments)
            except Error as error:
                if texts:
                    raise Error("; ".join(texts), error.status) from None
                raise

    def ir(self, stage: str) -> str:
        """Returns the program after a stage, as text.

        stage: import, partition, decompose, fuse, group, bufferize, apply or lower,
               the stages of docs/architecture.md; llvm: LLVM IR, optimized; assembly; for the
               target "cuda", ptx: the kernels, if they are of one group and chip.

        Errors: CompileError: an unknown stage, or one that the program does not have.
        """
        try:
            text: str = self._compiler.print_program(*self._request, _encode("stage", stage))
        except self._compiler.Failure as failure:
            raise _make_error(failure) from None
        return text

    @property
    def schedule(self) -> tuple[str, ...]:
        """The schedule of each group, such as "#bngrad.schedule<channels>"."""
        if self._schedules is None:
            self._schedules = tuple(self.ir("schedules").splitlines())
        return self._schedules

    @property
    def signature(self) -> str:
        """The parameters, such as "(x: ?x64xf32) -> (result0: 64xf32)"."""
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"

    def __repr__(self) -> str:
        return f"<bngrad.Program {self.entry}{self.signature} for {self.target}>"


def _load(kind: type[Program], text: bytes, options: dict[str, Any]) -> Program:
    """Compiles a program that was pickled."""
    return kind(text, **options)


def compile(text: str | bytes, *, entry: str | None = None, target: str = "cpu",
            schedule: str | None = None) -> Program:
    """Compiles a function of MLIR for this machine.

    text: a module as text or bytecode, of bngrad, linalg and other dialects on
          tensors, with gradients of StableHLO, MHLO and torch in generic form, as
          bngrad-compile takes it.
    entry: the function, if there are several.
    target: "cpu"; "cuda" for kernels for sm_90 NVIDIA GPUs, where arrays are copied
            there and back; "cuda:sm_80,sm_90" names other chips.
    schedule: a #bngrad.schedule for every group; None to choose one.

    Errors: CompileError, with MLIR's diagnostics; CompilerNotFoundError, an
            ImportError, without the package bngrad-compiler.
    """
    return Program(text, entry=entry, target=target, schedule=schedule)


def opt(text: str | bytes, passes: str | Sequence[str]) -> str:
    """Runs passes of bngrad or MLIR on a module, as bngrad-opt does, and returns it as text.

    text: a module as text or bytecode.
    passes: a pipeline such as "builtin.module(func.func(bngrad-decompose))", or a list
            of flags such as ["--bngrad-decompose", "--bngrad-cpu-pipeline=stop-after=group"];
            "--allow-unregistered-dialect" may be among them.

    Errors: CompileError, with MLIR's diagnostics; for a value that an option does not
            take, LLVM prints the reason to standard error. CompilerNotFoundError, an
            ImportError, without the package bngrad-compiler.
    """
    compiler = _find_compiler()
    encoded = _encode_text(text)
    pipeline = None
    flags: list[bytes] = []
    if isinstance(passes, str):
        pipeline = _encode("passes", passes)
    elif isinstance(passes, Sequence) and not isinstance(passes, (bytes, bytearray, memoryview)):
        flags = [_encode("passes", flag) for flag in passes]
    else:
        raise DtypeError(f"passes: expected a pipeline or a list of flags, got {_get_name(passes)}",
                         "BNGRAD_BAD_DTYPE")
    try:
        result: str = compiler.run_passes(encoded, pipeline, flags)
    except compiler.Failure as failure:
        raise _make_error(failure) from None
    return result
