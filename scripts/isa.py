#!/usr/bin/env python3
"""Lists the values of BNGRAD_ISA, the best first: lines `NAME yes` if this CPU has the instruction set, else `NAME no`.

Usage: isa.py BIN_DIR [--turn=NUMBER]

BIN_DIR has a finished bngrad-opt, which is asked. With --turn, the line of one value alone, which changes with NUMBER,
such as the number of commits.
"""

import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys
from typing import NamedTuple

DECLARED = pathlib.Path(__file__).resolve().parents[1] / "lib" / "Runtime" / "Kernels" / "InstructionSets.def"
PREFIXES = {"x86_64": "x86-64", "aarch64": "armv8"}


class Declared(NamedTuple):
    """An instruction set: the value of BNGRAD_ISA, LLVM's name of the CPU, and a feature that it has beside, or none."""
    name: str
    cpu: str
    feature: str


def read_declared() -> list[Declared]:
    """Those of all architectures, the best of each first."""
    text = DECLARED.read_text(encoding="utf-8")
    return [Declared(*found) for found in
            re.findall(r'^BNGRAD_ISA(?:_WITH)?\("([^"]+)", "([^"]+)"(?:, "([^"]+)")?', text, re.MULTILINE)]


def list_names() -> list[str]:
    """Those of this architecture."""
    prefix = PREFIXES.get(platform.machine(), "none")
    return [each.name for each in read_declared() if each.name.startswith(prefix)]


def is_runnable(name: str, bin_dir: pathlib.Path) -> bool:
    tool = bin_dir / "bngrad-opt"
    try:
        run = subprocess.run([tool, "--bngrad-cpu-pipeline"], input=b"module {}", timeout=60,
                             env=os.environ | {"BNGRAD_ISA": name}, capture_output=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"isa.py: error: expected BIN_DIR with a finished bngrad-opt: {error}")
    if run.returncode != 0 and not run.stderr.startswith(b"bngrad-opt: error: BNGRAD_ISA: "):
        sys.exit(run.stderr.decode(errors="replace"))
    return run.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin_dir", type=pathlib.Path, metavar="BIN_DIR")
    parser.add_argument("--turn", type=int, metavar="NUMBER")
    options = parser.parse_args()
    names = list_names()
    if options.turn is not None and names:
        names = [names[options.turn % len(names)]]
    for name in names:
        print(name, "yes" if is_runnable(name, options.bin_dir) else "no")


if __name__ == "__main__":
    main()
