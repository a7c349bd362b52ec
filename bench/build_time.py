#!/usr/bin/env python3
"""Builds BNGrad in an empty folder, and prints the CPU seconds of each library and file.

Usage: build_time.py [--source=ROOT] [--targets=NAME,...] [--jobs=N] [--files=N] [--keep=FOLDER] [CMAKE_OPTION...]

Every command of the build is run by this script, which records the CPU time (user and system) that the command and its
children have used, without ccache. `calibration` is the CPU time of a source that includes the headers of MLIR which
most of BNGrad's sources include, and nothing else, measured before and after the build: the ratio of the total to it
lets machines, and compilers, be compared. --source=ROOT builds another checkout, such as that of an earlier commit, on
the same machine. CMAKE_OPTION is -DNAME=VALUE, such as -DCMAKE_UNITY_BUILD=OFF.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
LLVM = Path("/usr/lib/llvm-22")
COMPILER = "clang++-22"
CALIBRATION = """#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
"""


def get_children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def record(log: str, command: List[str]) -> int:
    """Runs a command of the build, and appends its CPU time and name to `log`."""
    status = subprocess.run(command).returncode
    # Of a compilation the object, of another command its words.
    output = command[command.index("-o") + 1] if "-o" in command else " ".join(command)
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{get_children_seconds():.3f}\t{os.getcwd()}\t{output[:1000]}\n")
    return status


def calibrate(folder: Path) -> float:
    """The least CPU seconds of three compilations of CALIBRATION."""
    source = folder / "calibration.cpp"
    source.write_text(CALIBRATION, encoding="utf-8")
    times = []
    for _ in range(3):
        before = get_children_seconds()
        subprocess.run([COMPILER, "-std=c++17", "-fno-rtti", "-O2", "-w", f"-I{LLVM}/include", "-c", source, "-o",
                        folder / "calibration.o"], check=True)
        times.append(get_children_seconds() - before)
    return min(times)


def configure(source: Path, build: Path, log: Path, options: List[str]) -> None:
    launcher = f"{sys.executable} {Path(__file__).resolve()} --record {log}"
    rules = build / "rules.cmake"
    rules.write_text("".join(f'set_property(GLOBAL PROPERTY RULE_LAUNCH_{kind} "{launcher}")\n'
                             for kind in ("COMPILE", "LINK", "CUSTOM")), encoding="utf-8")
    command = ["cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
               f"-DCMAKE_C_COMPILER={COMPILER.replace('++', '')}", f"-DCMAKE_CXX_COMPILER={COMPILER}",
               f"-DMLIR_DIR={LLVM}/lib/cmake/mlir", f"-DLLVM_DIR={LLVM}/lib/cmake/llvm",
               "-DPython3_EXECUTABLE=/usr/bin/python3", f"-DCMAKE_PROJECT_INCLUDE={rules}", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def name_of(folder: str, output: str, build: Path) -> Tuple[str, str]:
    """The library of a command's output and its file, both relative to the build."""
    path = os.path.relpath(os.path.normpath(os.path.join(folder, output.split(" ")[0])), build)
    if match := re.match(r"(.*?)/?CMakeFiles/[^/]+\.dir/(.*)\.(o|pch)$", path):
        return match[1], f"{match[1]}/{match[2]}"
    if path.endswith(".inc"):
        return "TableGen", path
    if path.endswith(".o"):
        return "ready kernels", path
    return "links and others", output[:100] if " " in output else path


def report(log: Path, build: Path, files: int, calibration: float) -> None:
    libraries: Dict[str, float] = defaultdict(float)
    counts: Dict[str, int] = defaultdict(int)
    seconds: Dict[str, float] = defaultdict(float)
    for line in log.read_text(encoding="utf-8").splitlines():
        time, folder, output = line.split("\t", 2)
        library, file = name_of(folder, output, build)
        libraries[library] += float(time)
        counts[library] += 1
        seconds[file] += float(time)
    for title, times in (("library", libraries), ("file", dict(sorted(seconds.items(), key=lambda f: -f[1])[:files]))):
        print(f"{'CPU s':>8}  {title}")
        for name, time in sorted(times.items(), key=lambda item: -item[1]):
            print(f"{time:8.1f}  {name}" + (f" ({counts[name]})" if times is libraries else ""))
    total = sum(libraries.values())
    print(f"total={total:.1f} calibration={calibration:.2f} ratio={total / calibration:.1f}")


def main() -> int:
    if sys.argv[1:2] == ["--record"]:
        return record(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=ROOT, help="the checkout to build (default: this one)")
    parser.add_argument("--targets", default="all,check-bngrad-depends",
                        help="of ninja (default: %(default)s); the demo's are bngrad-opt,bngrad-runner")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at a time (default: the CPUs)")
    parser.add_argument("--files", type=int, default=20, help="slowest files to print (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="an empty or new folder to build in, which is kept")
    options, cmake_options = parser.parse_known_args()
    if unknown := [option for option in cmake_options if not option.startswith("-D")]:
        parser.error(f"expected options of CMake, -DNAME=VALUE, got '{unknown[0]}'")
    os.environ["CCACHE_DISABLE"] = "1"
    build = (options.keep or Path(tempfile.mkdtemp())).resolve()
    build.mkdir(parents=True, exist_ok=True)
    if any(build.iterdir()):
        parser.error(f"expected --keep to be an empty folder, got '{build}'")
    log = build / "commands.txt"
    try:
        before = calibrate(build)
        configure(options.source.resolve(), build, log, cmake_options)
        subprocess.run(["ninja", "-C", build, f"-j{options.jobs}", *options.targets.split(",")], check=True,
                       stdout=subprocess.DEVNULL)
        report(log, build, options.files, min(before, calibrate(build)))
    finally:
        if not options.keep:
            shutil.rmtree(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
