"""Processes of the tools, the faults that they show, and the comparison of results."""

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from bounded import Bounded, accept
from floats import decode
from program import Program
from writer import result_types

COMPILE_SECONDS = 20  # for one program of ordinary size
MEMORY = 16 << 30  # bytes of address space


class Tools(NamedTuple):
    binaries: Path  # folder of bngrad-compile, bngrad-opt, bngrad-runner
    directory: Path

    @property
    def emulator(self) -> Path:
        return self.binaries.parent / "lib" / "libBNGradCudaEmulator.so"


class Fault(NamedTuple):
    seed: int
    way: str
    kind: str  # wrong, guard, status, threads, crash, hang, refused, emulator
    text: str

    @property
    def signature(self) -> str:
        """A signature of the fault, equal for all programs that have it."""
        text = re.sub(r"'[^']*' op", "op", self.text) if self.kind == "refused" else self.text
        text = re.sub(r"/\S+/", "", text)
        text = re.sub(r"0x[0-9a-f]+|[0-9]+|%\w+|tensor<[^>]*>|memref<[^>]*(>>|>)|\([^()]*\)", "", text)
        first = next((line for line in text.splitlines() if "error" in line or "Assertion" in line),
                     text.splitlines()[0] if text else "")
        first = re.sub(r"^.*?error: ", "", first)
        target = self.way.split()[0]
        return f"{target} {self.kind}" + ("" if self.kind in ("wrong", "guard", "threads", "hang")
                                          else ": " + re.sub(r"\s+", " ", first)[:110])


class Case(NamedTuple):
    seed: int
    program: Program

    @property
    def name(self) -> str:
        return f"f{self.seed}"


def parse(way: str) -> Dict[str, str]:
    words = re.findall(r"(\w[\w-]*)(?:=(#[^>]*>|\S+))?", way)
    options = dict(words[1:])
    options["target"] = options.get("target", words[0][0])
    options["how"] = words[0][0]
    return options


def limit(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command: Sequence, seconds: float, environment: Optional[Dict[str, str]] = None,
        stdin: Optional[bytes] = None) -> Tuple[Optional[int], str, bytes]:
    """The exit status (None: timeout), standard error, standard output. CPU time is limited, so that a busy
    machine causes no faults; a sleeping process also ends."""
    full = {**os.environ, "OMP_NUM_THREADS": "3", **(environment or {})}
    process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=full, start_new_session=True,
                               preexec_fn=lambda: limit(seconds))
    try:
        out, err = process.communicate(stdin, timeout=20 * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "", b""
    if process.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
        return None, "", b""
    return process.returncode, err.decode(errors="replace"), out


NOISE = re.compile(r"raise|abort|__|mem(cpy|move|set)|llvm::(sys|report)|PrintStack|Signal|std::|operator new|"
                   r"void mlir::Pattern|"
                   r"mlir::(PatternApplicator|applyPatterns|PassManager|detail::OpToOp)")


def where(command: Sequence, stdin: Optional[bytes]) -> str:
    """The functions in which a command crashes, if gdb is installed."""
    if not shutil.which("gdb"):
        return ""
    with tempfile.NamedTemporaryFile() as file:
        file.write(stdin or b"")
        file.flush()
        arguments = shlex.join(str(c) for c in command[1:])
        _, _, out = run(["gdb", "-batch", "-nx", "-ex", f"run {arguments} < {file.name} > /dev/null 2>&1", "-ex",
                         "bt 40", command[0]], 6 * COMPILE_SECONDS)
    frames = re.findall(r"^#\d+ +(?:0x\w+ in )?([^(\n]*(?:\([^)]*\))?[\w:~<>, ]*)", out.decode(errors="replace"), re.M)
    names = [f.split("(")[0].strip() for f in frames]
    return " < ".join([n for n in names if n and n != "??" and not NOISE.match(n)][:2])


def failed(seed: int, way: str, code: Optional[int], error: str, what: str, command: Sequence = (),
           stdin: Optional[bytes] = None) -> Fault:
    if code is None:
        return Fault(seed, way, "hang", f"{what}: no end within the limit")
    if code < 0 or code >= 128 or "PLEASE submit a bug" in error:
        place = where(command, stdin) if command else ""
        return Fault(seed, way, "crash", f"{what}: status {code}: error: crash in {place}\n{error[-3000:]}")
    return Fault(seed, way, "refused", f"{error[:3000]}")


def describe(expected_value: Bounded, got: np.ndarray, good: np.ndarray, index: int, element: str) -> str:
    place = tuple(int(i) for i in np.argwhere(~good)[0])
    value, error = expected_value.value[place], expected_value.error[place]
    distance = abs(got[place] - value)
    return (f"result {index} ({element}) at {list(place)}: expected {float(value):.9g} within {float(error):.3g}, "
            f"got {float(got[place]):.9g} ({float(distance / error) if error else 0:.3g} of the bound), "
            f"{int((~good).sum())} of {good.size} elements")


def compare(case: Case, way: str, bits: Sequence[np.ndarray], values: Sequence[Bounded]) -> List[Fault]:
    faults = []
    for index, (type, result, value) in enumerate(zip(result_types(case.program), bits, values)):
        with np.errstate(all="ignore"):
            got = decode(result, type.element)
            good = accept(got, value)
        if not good.all():
            faults.append(Fault(case.seed, way, "wrong", describe(value, got, good, index, type.element)))
    return faults
