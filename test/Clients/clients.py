#!/usr/bin/env python3
"""Runs modules of JAX, TensorFlow and torch-mlir, and compares them with the clients' own results.

A program for each client writes its modules, in a process of its own. torch-mlir-opt lowers the
ops around the gradients; bngrad-runner does the rest. The differences of results are relative to
the largest absolute value of a result.

Each result is also compared with one in which two values are swapped, which must fail.

Usage: clients.py BIN_DIR FOLDER [--python=PYTHON] [--only=REGEX]
  --python  a Python with torch-mlir-opt beside it (default: this one); clients that it lacks
            are skipped
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

MOST_SECONDS = 10
# Versions of MLIR disagree on constants of i1 in hexadecimal digits.
GENERIC = ("--mlir-print-op-generic", "--mlir-print-elementsattrs-with-hex-if-larger=-1")
FEWEST = {"jax": 30, "tensorflow": 10, "torch": 10}


class Failure(Exception):
    pass


def run(*command):
    """Runs a command; a failure has its first error."""
    try:
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=6 * MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"{Path(str(command[0])).name}: did not end in {6 * MOST_SECONDS} s") from None
    if result.returncode != 0:
        lines = result.stderr.splitlines() or ["no message"]
        raise Failure(f"{Path(str(command[0])).name}: {next((l for l in lines if 'error:' in l), lines[-1])[:300]}")
    return result.stdout


def has_module(python, name):
    """Whether a package is installed."""
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"
    return subprocess.run([python, "-c", found]).returncode == 0


def legalize(case, tools):
    """The IR for bngrad-runner: linalg, and the gradients of the client or linalg of them."""
    opt, torch_opt = tools
    module, out = case / "module.mlir", case / "linalg.mlir"
    if not case.name.startswith("torch-"):
        run(torch_opt, module, "--stablehlo-legalize-to-linalg", *GENERIC, "-o", out)
        return out
    generic, imported = case / "generic.mlir", case / "imported.mlir"
    run(torch_opt, module, *GENERIC, "-o", generic)
    run(opt, generic, "--bngrad-import=torch-casts=torch_c", "--bngrad-to-linalg", *GENERIC,
        "-o", imported)
    run(torch_opt, imported, "--torch-decompose-complex-ops", "--torch-backend-to-linalg-on-tensors-backend-pipeline",
        "-o", out)
    return out


def load(path):
    """An array of bngrad-runner in float64; 16-bit elements without a type are bfloat16."""
    array = np.load(path)
    if array.dtype.kind == "V":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def plant(array):
    """The array with its smallest and its largest value swapped; a single value is larger by a tenth."""
    flat = array.copy().reshape(-1)
    smallest, largest = flat.argmin(), flat.argmax()
    if flat[smallest] != flat[largest]:
        flat[[smallest, largest]] = flat[[largest, smallest]]
    else:
        flat *= 1.1
    return flat.reshape(array.shape)


def find_difference(value, expected):
    """The largest difference, relative to the largest value."""
    return np.abs(value - expected).max(initial=0) / (np.abs(expected).max(initial=0) or 1)


def check(case, tools, runner):
    """The largest difference in units of the limit, its absolute size, and the seconds of compilation."""
    description = json.loads((case / "module.json").read_text())
    ir = legalize(case, tools)
    results = [case / f"result{i}.npy" for i in range(len(description["limits"]))]
    arguments = [f"--arg={case / f'argument{i}.npy'}" for i in range(description["arguments"])]
    start = time.monotonic()
    run(runner, ir, "--reassociate-sums", *arguments, *[f"--result={result}" for result in results])
    seconds = time.monotonic() - start
    if seconds > MOST_SECONDS:
        raise Failure(f"took {seconds:.1f} s to compile and run, expected at most {MOST_SECONDS}")
    worst = (0.0, 0.0)
    for i, (path, limit) in enumerate(zip(results, description["limits"])):
        value, expected = load(path), np.load(case / f"expected{i}.npy")
        if value.shape != expected.shape or not np.isfinite(value).all():
            raise Failure(f"result {i}: expected finite values of shape {expected.shape}, got shape {value.shape}")
        error = find_difference(value, expected)
        worst = max(worst, (error / limit, error))
        if error > limit:
            raise Failure(f"result {i}: difference {error:.2e} of the largest value, expected at most {limit:.1e}")
        if find_difference(value, plant(expected)) <= limit:
            raise Failure(f"result {i}: swapped values are not noticed")
    return worst, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    here = Path(__file__).parent
    torch_opt = shutil.which("torch-mlir-opt", path=str(Path(options.python).parent))
    if not torch_opt:
        sys.exit(f"expected torch-mlir-opt beside {options.python}")
    tools = options.bin_dir / "bngrad-opt", torch_opt
    failures, total = 0, 0
    for client, fewest in FEWEST.items():
        if not has_module(options.python, client):
            print(f"{client}: skipped, not installed")
            continue
        shutil.rmtree(options.folder / client, ignore_errors=True)
        (options.folder / client).mkdir(parents=True)
        written = subprocess.run([options.python, here / f"{client}_modules.py", options.folder / client],
                                 capture_output=True, text=True)
        if written.returncode != 0:
            print(f"{client}: FAILED: {written.stderr.strip().splitlines()[-1]}")
            failures += 1
            continue
        cases = sorted(path for path in (options.folder / client).iterdir() if re.search(options.only, path.name))
        if options.only and not cases:
            continue
        worst, longest, passed = (0.0, 0.0), 0.0, 0
        for case in cases:
            try:
                difference, seconds = check(case, tools, options.bin_dir / "bngrad-runner")
                worst, longest, passed = max(worst, difference), max(longest, seconds), passed + 1
            except Failure as failure:
                print(f"FAILED: {case.name}: {failure}")
        print(f"{client}: {passed} of {len(cases)} modules agree, largest difference {worst[1]:.1e}"
              f" ({worst[0]:.2f} of the limit), longest {longest:.1f} s")
        failures += len(cases) - passed
        total += len(cases)
        if not options.only and len(cases) < fewest:
            print(f"{client}: FAILED: expected at least {fewest} modules, got {len(cases)}")
            failures += 1
    if total == 0:
        sys.exit("expected modules of a client, got none")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
