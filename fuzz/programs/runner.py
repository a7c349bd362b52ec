"""Runs programs by bngrad-runner, with --check and npy files."""

import re
import shutil
from typing import List, Sequence

import numpy as np

from bounded import Bounded
from execution import COMPILE_SECONDS, Case, Fault, Tools, compare, failed, parse, run
from floats import STORAGE
from program import make_data
from writer import result_types, write

# Messages of --check without a bound; then the results are compared without --check.
NO_BOUND = re.compile(r"expected a bound that can be derived|--check: expected ops of bngrad outside of regions")


def save(path, element: str, bits: np.ndarray) -> None:
    bits = np.ascontiguousarray(bits).reshape(bits.shape)
    if element == "bf16":
        np.save(path, np.frombuffer(bits.tobytes(), "V2").reshape(bits.shape))
    elif element == "i1":
        np.save(path, bits.astype("|b1"))
    else:
        np.save(path, np.frombuffer(bits.tobytes(), {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i64": "<i8"}[element])
                .reshape(bits.shape))


def load(path, element: str, shape: Sequence[int]) -> np.ndarray:
    values = np.load(path)
    if values.shape != tuple(shape):
        raise ValueError(f"expected shape {tuple(shape)}, got {values.shape}")
    return np.frombuffer(values.tobytes(), STORAGE[element]).reshape(values.shape)


def may_overflow(line: str, values: Sequence[Bounded]) -> bool:
    """Whether a failure of --check is an overflow, and the program has one."""
    return "bound inf" in line or (re.search(r"max_error (inf|nan)", line) is not None
                                   and any(np.any(~value.is_known()) for value in values))


def run_runner(tools: Tools, case: Case, way: str, values: Sequence[Bounded]) -> List[Fault]:
    if case.program.form != "tensor":
        return []
    options = parse(way)
    directory = tools.directory / f"runner{case.seed}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    program = directory / "f.mlir"
    program.write_text(write(case.program, case.name))
    command = [tools.binaries / "bngrad-runner", program]
    command += [f"--{name}={options[name]}" for name in ("target", "chip", "schedule", "threads") if name in options]
    for index, argument in enumerate(case.program.arguments):
        save(directory / f"a{index}.npy", argument.type.element, make_data(argument))
        command.append(f"--arg={directory}/a{index}.npy")
    types = result_types(case.program)
    command += [f"--result={directory}/r{index}.npy" for index in range(len(types))]
    seconds = 2 * COMPILE_SECONDS
    code, error, out = run([*command, "--check"], seconds)
    lines = [line for line in out.decode(errors="replace").splitlines() if "FAILED" in line]
    # After an overflow of an intermediate value --check may fail (docs/numerics.md, section 7).
    if code == 1 and (NO_BOUND.search(error) or lines and all(may_overflow(line, values) for line in lines)):
        code, error, out = run(command, seconds)
    elif code == 1 and lines:
        shutil.rmtree(directory, ignore_errors=True)
        return [Fault(case.seed, way, "check", f"error: --check calls a result wrong: {lines[0]}")]
    if code != 0:
        return [failed(case.seed, way, code, error, "bngrad-runner")]
    try:
        bits = [load(directory / f"r{i}.npy", t.element, t.shape) for i, t in enumerate(types)]
    except (ValueError, OSError) as fault:
        return [Fault(case.seed, way, "wrong", f"result file: {fault}")]
    shutil.rmtree(directory, ignore_errors=True)
    faults = compare(case, way, bits, values)
    if error.strip() and not faults:
        faults = [Fault(case.seed, way, "refused", "standard error though the run succeeded: error: " + error)]
    return faults
