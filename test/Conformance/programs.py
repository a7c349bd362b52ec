"""The ops under test as IR, .npy files, and runs of the tools."""

import itertools
import re
import signal
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

NUMPY_TYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i1": "|b1",
               "i64": "<i8"}  # bf16 has none
RESULTS = ("grad_input", "grad_scale", "grad_offset")
TIMEOUT_S = 900


class Failure(Exception):
    """The reason why a case fails, in one line."""


def tensor_type(shape: Sequence[Optional[int]], element: str) -> str:
    """`shape` has None for dynamic sizes."""
    sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{sizes}{element}>"


def number(value: float, element: str = "f64") -> str:
    """A float attribute; 17 digits identify a double."""
    return f"{value:.17e} : {element}"


class Gradient(NamedTuple):
    """One batch_norm_backward, independent of the op in the text.

    `operands` maps the names of the bngrad op's operands to their types, in the
    op's order, without the absent ones; `results` likewise. `returned` are the
    results that are used.
    """
    operands: Dict[str, str]
    results: Dict[str, str]
    returned: Tuple[str, ...]
    feature_dims: Tuple[int, ...] = (1,)
    epsilon: float = 0.0
    statistics: str = "batch"


def function(gradient: Gradient, body: str) -> str:
    """@f around `body`, which defines %r:N, the results in order."""
    arguments = ", ".join(f"%{name}: {type}"
                          for name, type in gradient.operands.items())
    names = list(gradient.results)
    values = ", ".join(f"%r#{names.index(name)}" if len(names) > 1 else "%r"
                       for name in gradient.returned)
    types = ", ".join(gradient.results[name] for name in gradient.returned)
    terminator = f"return {values} : {types}" if types else "return"
    return (f"func.func @f({arguments}) -> ({types}) {{\n{body}\n"
            f"  {terminator}\n}}\n")


def bngrad_op(gradient: Gradient, mnemonic: str = "batch_norm_backward") -> str:
    """Only the op; a half omits attributes of the whole op that it lacks."""
    clauses = " ".join(f"{name}(%{name} : {type})"
                       for name, type in gradient.operands.items())
    dims = ", ".join(map(str, gradient.feature_dims))
    attributes = [f"feature_dims = array<i64{': ' if dims else ''}{dims}>"]
    if mnemonic != "batch_norm_backward_reduce":
        attributes.append(f"epsilon = {number(gradient.epsilon)}")
    if mnemonic == "batch_norm_backward":
        attributes.append(
            f"statistics = #bngrad.statistics<{gradient.statistics}>")
    count = len(gradient.results)
    return (f"  %r{f':{count}' if count > 1 else ''} = bngrad.{mnemonic}"
            f" {clauses} {{{', '.join(attributes)}}} : "
            + ", ".join(gradient.results.values()))


def bngrad_program(gradient: Gradient,
                   mnemonic: str = "batch_norm_backward") -> str:
    return function(gradient, bngrad_op(gradient, mnemonic))


def stablehlo_program(gradient: Gradient, dialect: str = "stablehlo") -> str:
    """StableHLO's or MHLO's op; its epsilon is an f32 attribute."""
    operands = [(name, gradient.operands[name]) for name in
                ("input", "scale", "mean", "variance", "grad_output")]
    return function(gradient, (
        f"  %r:3 = \"{dialect}.batch_norm_grad\"("
        + ", ".join(f"%{name}" for name, _ in operands)
        + f") <{{epsilon = {number(gradient.epsilon, 'f32')}, feature_index = "
        f"{gradient.feature_dims[0]} : i64}}> : ("
        + ", ".join(type for _, type in operands) + ") -> ("
        + ", ".join(gradient.results.values()) + ")"))


def torch_program(gradient: Gradient) -> str:
    """aten.native_batch_norm_backward: inv_std in training, or variance."""
    train = gradient.statistics == "batch"
    has_scale = "scale" in gradient.operands
    operands = ["%grad_output", "%input", "%scale" if has_scale else "%none"]
    operands += (["%none", "%none", "%mean", "%inv_std"] if train else
                 ["%mean", "%variance", "%none", "%none"])
    types = [gradient.operands.get(operand[1:], "!torch.none")
             for operand in operands]
    results = [type if name in gradient.returned else "!torch.none"
               for name, type in gradient.results.items()]
    lines = ["%none = \"torch.constant.none\"() : () -> !torch.none"]
    flags = {"train": train}
    flags.update({f"computes_{name}": name in gradient.returned
                  for name in gradient.results})
    for name, flag in flags.items():
        lines.append(f"%{name} = \"torch.constant.bool\"() <{{value = "
                     f"{str(flag).lower()}}}> : () -> !torch.bool")
    lines.append("%eps = \"torch.constant.float\"() <{value = "
                 f"{number(gradient.epsilon)}}}> : () -> !torch.float")
    masks = ", ".join(f"%computes_{name}" for name in gradient.results)
    lines.append(f"%output_mask = \"torch.prim.ListConstruct\"({masks}) : "
                 "(!torch.bool, !torch.bool, !torch.bool) -> "
                 "!torch.list<bool>")
    lines.append(
        "%r:3 = \"torch.aten.native_batch_norm_backward\"("
        + ", ".join(operands + ["%train", "%eps", "%output_mask"]) + ") : ("
        + ", ".join(types + ["!torch.bool", "!torch.float",
                             "!torch.list<bool>"])
        + ") -> (" + ", ".join(results) + ")")
    return function(gradient, "\n".join(f"  {line}" for line in lines))


def to_element(array: np.ndarray, element: str) -> np.ndarray:
    """`array` rounded to `element`; bf16 as uint16, its bits.

    bf16 is rounded through f32, which may be off by one unit in one of 65536
    cases. Inputs have no tolerance, so this only matters for bitwise
    comparison.
    """
    if element != "bf16":
        return np.asarray(array).astype(NUMPY_TYPES[element])
    bits = np.asarray(array, dtype="<f4").view("<u4")
    rounded = (bits + np.uint32(0x7fff) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(array), 0x7fc0, rounded).astype("<u2")


def to_double(array: np.ndarray, element: str) -> np.ndarray:
    """The inverse of to_element."""
    if element == "bf16":
        return (array.astype("<u4") << 16).view("<f4").astype(float)
    return array.astype(float)


def write_npy(path: Path, array: np.ndarray, element: str) -> None:
    stored = to_element(array, element)
    np.save(path, stored.view("V2") if element == "bf16" else stored)


def read_npy(path: Path, element: str) -> np.ndarray:
    """The array as stored; bf16 as uint16, its bits."""
    array = np.load(path)
    expected = np.dtype("V2" if element == "bf16" else NUMPY_TYPES[element])
    if array.dtype != expected:
        raise Failure(f"expected {element} in {path.name}, got {array.dtype}")
    return array.view("<u2") if element == "bf16" else array


class Outcome(NamedTuple):
    status: int
    output: str
    errors: str


class Argument(NamedTuple):
    values: np.ndarray
    element: str


class Tools:
    """bngrad-opt and bngrad-runner of one build, run in a separate folder."""

    def __init__(self, bin_dir: Path, folder: Path):
        self.bin_dir, self.folder = bin_dir, folder
        self.numbers = itertools.count()

    def call(self, tool: str, arguments: List[str], text: str) -> Outcome:
        """Runs `tool` on `text`; a crash or a hang is a failure."""
        command = [str(self.bin_dir / tool), "-", *arguments]
        try:
            done = subprocess.run(command, input=text, capture_output=True,
                                  text=True, timeout=TIMEOUT_S, check=False)
        except OSError as error:
            raise Failure(f"cannot run {tool}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise Failure(f"{tool} ran for more than {TIMEOUT_S} s") from None
        # Shells report a signal as 128 + N, and so do LLVM's signal handlers.
        number = -done.returncode if done.returncode < 0 else (
            done.returncode - 128)
        if number > 0:
            try:
                name = signal.Signals(number).name
            except ValueError:
                name = f"status {done.returncode}"
            raise Failure(f"{tool} crashed ({name})")
        return Outcome(done.returncode, done.stdout, done.stderr)

    def run(self, text: str, specs: List[str], results: List[str]) -> None:
        """Runs @f with `specs` for --arg and --result, and checks each result
        against its bound; any error is a failure."""
        outcome = self.call(
            "bngrad-runner",
            [*(f"--arg={spec}" for spec in specs),
             *(f"--result={path}" for path in results), "--check",
             "--threads=2"], text)
        if outcome.status != 0:
            lines = (outcome.output + outcome.errors).splitlines()
            wrong = [line for line in lines
                     if line.endswith("FAILED") or "error:" in line]
            raise Failure((wrong or lines or ["no output"])[0].replace(
                f"{self.folder}/", ""))
        checked = re.findall(r"^result \d+ \w+ max_error \S+ bound \S+ ok$",
                             outcome.output, re.M)
        if len(checked) != len(results):
            raise Failure(f"expected --check of {len(results)} results, "
                          f"got {len(checked)}")

    def evaluate(self, text: str, arguments: Dict[str, Argument],
                 elements: Dict[str, str]) -> Dict[str, np.ndarray]:
        """The results of @f as stored, by name; `elements` are their types."""
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        specs = []
        for name, argument in arguments.items():
            path = folder / f"{name}.npy"
            write_npy(path, argument.values, argument.element)
            specs.append(str(path))
        paths = {name: folder / f"result-{name}.npy" for name in elements}
        self.run(text, specs, [str(path) for path in paths.values()])
        return {name: read_npy(path, elements[name])
                for name, path in paths.items()}
