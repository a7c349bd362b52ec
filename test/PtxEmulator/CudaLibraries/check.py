"""Compiles programs with nvcc and runs them on the emulator of each chip.

The last lines have the cases and the different kernels of each chip. Fails if a
case fails or a chip runs fewer kernels than expected.
"""

import argparse
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def compile_program(options, name):
    """The path of the program NAME.cu, with PTX for all chips."""
    path = os.path.join(options.out, name)
    libraries = os.path.join(options.build, "lib")
    command = [options.nvcc, "-std=c++17", "--cudart=none", "--no-compress", "--diag-suppress=20054",
               f"-I{options.source}/include"]
    for chip in options.chips:
        command += ["-gencode", f"arch=compute_{chip},code=compute_{chip}"]
    command += [os.path.join(FOLDER, file) for file in (f"{name}.cu", "main.cpp", "runtime.cpp")]
    command += ["-o", path, f"-L{libraries}", "-lBNGradCudaEmulator", "-Xlinker", f"-rpath={libraries}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return path


def run_program(path, chip):
    """Runs the program: the numbers of cases and kernels, and whether a case failed."""
    environment = dict(os.environ, PTX_EMULATOR_CHIP=f"sm_{chip}", PTX_EMULATOR_EQUAL_STORES="error")
    done = subprocess.run([path], capture_output=True, text=True, env=environment)
    print(f"{os.path.basename(path)} sm_{chip}\n{done.stdout}{done.stderr}", end="")
    summary = re.search(r"^(\d+) passed, (\d+) failed, (\d+) kernels$", done.stdout, re.MULTILINE)
    if not summary:
        return 0, 0, True
    return int(summary[1]), int(summary[3]), done.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--source", required=True, help="the root of the sources")
    parser.add_argument("--build", required=True, help="the folder of the build")
    parser.add_argument("--out", required=True, help="folder for the programs")
    parser.add_argument("--chips", type=lambda text: text.split(","), required=True, help="such as 80,90")
    parser.add_argument("--least", type=int, default=1, help="kernels on each chip")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    paths = [compile_program(options, name) for name in options.programs]
    has_failed = False
    summary = []
    for chip in options.chips:
        cases = kernels = 0
        for path in paths:
            passed, launched, failed = run_program(path, chip)
            cases += passed
            kernels += launched
            has_failed |= failed
        has_failed |= kernels < options.least
        summary.append(f"sm_{chip}: {cases} cases passed, {kernels} kernels, expected at least {options.least}")
    print("\n".join(summary))
    return has_failed


if __name__ == "__main__":
    sys.exit(main())
