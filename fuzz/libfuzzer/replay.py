#!/usr/bin/env python3
"""Runs the tools on stored inputs, and checks how they exit.

  replay.py BIN_DIR INPUTS_DIR

INPUTS_DIR has a folder for each target of fuzz/libfuzzer. A tool must exit with
0, or with 1 and an error, within 20 seconds.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import seeds

HANG_SECONDS = 20


def make_command(target: str, path: Path, bins: Path, scratch: Path) -> list[str]:
    """The tool and its arguments; its files are written to `scratch`."""
    data = path.read_bytes()
    first, _, rest = data.partition(b"\n")
    if target in ("ir-text", "ir-bytecode", "schedule"):
        ir = scratch / "input"
        # The first line stays, as a comment, so that locations are those of the file.
        ir.write_bytes(rest if target == "ir-bytecode" else data)
        pipeline = first.decode(errors="replace").removeprefix("// passes: ")
        return [str(bins / "bngrad-opt"), "--allow-unregistered-dialect", str(ir), "-o", str(scratch / "out"),
                f"--pass-pipeline={pipeline}"]
    if target == "npy":
        program = scratch / "program.mlir"
        program.write_text("func.func @f(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {\n"
                           "  return %a : tensor<3x4xf32>\n}\n")
        return [str(bins / "bngrad-runner"), str(program), f"--arg={path}"]
    if target == "ptx":
        return [str(bins / "ptx-emulator"), str(path), *seeds.launch_options(first.decode(errors="replace"))]
    tool = {"runner-options": "bngrad-runner", "compile-options": "bngrad-compile"}[target]
    seeds.write_files(scratch)
    return [str(bins / tool), *data.decode(errors="surrogateescape").splitlines()]


def replay(target: str, path: Path, bins: Path) -> str:
    """A description of the fault; empty if there is none."""
    with tempfile.TemporaryDirectory() as name:
        command = make_command(target, path, bins, Path(name))
        env = dict(os.environ, PTX_EMULATOR_BUDGET="300000")
        try:
            done = subprocess.run(command, capture_output=True, cwd=name, env=env, stdin=subprocess.DEVNULL,
                                  timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            return f"expected an end within {HANG_SECONDS} s, got none"
    errors = done.stderr.decode(errors="replace")
    # ptx-emulator exits with 2 for a wrong command line, with 1 for a faulty kernel.
    if done.returncode not in ((0, 1, 2) if target == "ptx" else (0, 1)):
        return f"expected exit 0 or 1, got {done.returncode}: {errors[-400:]}"
    if done.returncode and not any(mark in errors for mark in ("error:", "ptx-emulator: ")):
        return "expected an error with exit 1, got none"
    return ""


def main() -> int:
    bins, inputs = Path(sys.argv[1]), Path(sys.argv[2])
    cases = [(folder.name, path) for folder in sorted(inputs.iterdir()) for path in sorted(folder.iterdir())]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: replay(*case, bins), cases))
    for (target, path), what in zip(cases, results):
        if what:
            print(f"{target}/{path.name}: {what}")
    print(f"{len(cases)} inputs, {sum(map(bool, results))} faults")
    return int(any(results) or not cases)


if __name__ == "__main__":
    sys.exit(main())
