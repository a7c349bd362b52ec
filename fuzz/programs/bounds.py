#!/usr/bin/env python3
"""Searches for accesses out of bounds that checked entries of programs let through.

  bounds.py --bin=build/bin [--seed=N] [--count=N | --seconds=N]

Each template has one op whose sizes, offsets and indices are arguments. It is compiled once, and called with random
values, of which about half are out of bounds: NAME_checked must return 0 or a status by what numpy says, and must not
change any byte around its arrays.
"""

import argparse
import ctypes
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from bounds_templates import TEMPLATES, Buffer, Case, Template

BAD_SHAPE = 4


def call(library: ctypes.CDLL, name: str, case: Case):
    """Calls NAME_checked; its status and the text of NAME_diagnose."""
    arguments = [ctypes.byref(argument.descriptor) if isinstance(argument, Buffer) else ctypes.c_int64(argument)
                 for argument in case.arguments]
    # The size is that for valid sizes; so a workspace that is too small is none of these programs' errors.
    workspace = ctypes.create_string_buffer(1 << 16)
    more = [workspace, ctypes.c_size_t(1 << 16), None]
    status = getattr(library, f"{name}_checked")(*arguments, *more)
    text = ctypes.create_string_buffer(512)
    getattr(library, f"{name}_diagnose")(*arguments, *more, text, ctypes.c_size_t(len(text)))
    return status, text.value.decode()


def check(library: ctypes.CDLL, template: Template, case: Case) -> str:
    """The fault of a call; empty: none."""
    before = [argument.array.copy() if isinstance(argument, Buffer) else None for argument in case.arguments]
    status, text = call(library, template.name, case)
    buffers = [argument for argument in case.arguments if isinstance(argument, Buffer)]
    if not all(buffer.is_guarded() for buffer in buffers):
        return "a write out of bounds"
    if case.is_valid != (status == 0):
        return f"expected {'status 0' if case.is_valid else 'an error'}, got {status}: {text}"
    if not case.is_valid:
        if status != BAD_SHAPE or not text:
            return f"expected status {BAD_SHAPE} and a text, got {status}: {text!r}"
        if any(not np.array_equal(old, argument.array) for old, argument in zip(before, case.arguments)
               if old is not None):
            return "a write before an error"
        return ""
    for expected, buffer in zip(template.expect(case.arguments), buffers):
        if expected is not None and not np.array_equal(expected, buffer.array):
            return f"expected {expected}, got {buffer.array}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="calls of each template")
    parser.add_argument("--seconds", type=float, help="in total, instead of a count")
    options = parser.parse_args()
    faults = calls = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder, "bounds.mlir"), pathlib.Path(folder, "bounds.so")
        source.write_text("\n".join(template.text.replace("NAME", template.name) for template in TEMPLATES))
        subprocess.run([options.bin / "bngrad-compile", source, "-o", output, "--threads=2"], check=True)
        library = ctypes.CDLL(str(output))
        for number, template in enumerate(TEMPLATES):
            random = np.random.default_rng([options.seed, number])
            end = time.monotonic() + (options.seconds or 0) / len(TEMPLATES)
            for place in itertools.count():
                if time.monotonic() > end if options.seconds else place == options.count:
                    break
                case = template.make(random)
                fault = check(library, template, case)
                calls += 1
                refused += not case.is_valid
                if fault:
                    faults += 1
                    values = [argument.array.shape if isinstance(argument, Buffer) else argument
                              for argument in case.arguments]
                    print(f"FAULT {template.name} --seed={options.seed}, call {place}, {values}: {fault}", flush=True)
                    break
    print(f"bounds: {len(TEMPLATES)} templates, {calls} calls, {refused} of them out of bounds, {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
