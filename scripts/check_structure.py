#!/usr/bin/env python3
"""Checks the sizes of files and functions and the libraries of the stages.

* The header of a C++ file is one line, which clang-format may have broken.
* No C++ or Python file has more than 600 lines.
* No function of C++ has more than 80 lines after its opening brace, which is
  what clang-tidy's readability-function-size counts.
* Every folder of lib/Transforms is a stage with a library of its own, made by
  exactly one `bngrad_add_library(BNGrad<folder>`.
* A stage links only libraries of earlier stages, and includes only their headers.
* A folder of lib includes public headers of the folders below it, and of another folder nothing else but headers
  that are made for both, which need neither MLIR nor LLVM.
* ToLinalg, which other compilers embed, names no dialect of one target.
* In libraries that the child of a fork may call, a file with a lock says what
  becomes of it in the child, and no first call makes a static variable, which
  has a lock as well.

Usage: check_structure.py [SOURCE_ROOT]
"""

import argparse
import os
import re
import sys
from pathlib import Path

from sources import list_files

MOST_LINES = 600
SIZED_FOLDERS = ("bench", "fuzz", "include", "lib", "ptx-emulator", "python", "scripts", "tools",
                 "unittests")
SIZED_SUFFIXES = (".cpp", ".h", ".py")

MOST_FUNCTION_LINES = 80
FUNCTION_FOLDERS = ("fuzz", "include", "lib", "ptx-emulator", "python", "tools", "unittests")
# Comments, literals and directives: braces in them open no block.
NO_CODE = re.compile(
    r'R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"'
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE)
# The text before the brace of a block whose own blocks may be functions.
CONTAINER = re.compile(r"^(?:inline\s+)?namespace\b|^extern\s*$|\b(?:class|struct|union|enum)\b[^()=]*$")

STAGES = ["Utils", "ToLinalg", "Partition", "Schedule", "Bufferize", "Layout", "Apply", "CAbi", "Lower", "Pipelines"]
TARGET_DIALECT = re.compile(r"\bMLIR\w*(?:NVVM|NVGPU|GPU|OpenMP|LLVM)\w*Dialect\b")
LIBRARY = re.compile(r"\bbngrad_add_library\(\s*(\w+)")

# The folders of include/BNGrad whose headers each folder of lib may include.
PUBLIC_HEADERS = {
    "Dialect": {"Dialect"},
    "Transforms": {"Dialect", "Transforms", "Runtime"},
    "Compiler": {"Dialect", "Transforms", "Compiler", "Runtime", "InitAll.h"},
    "Reference": {"Dialect", "Reference", "Runtime"},
    "Runtime": {"Runtime"},
    "python": {"Runtime"},
}
SHARED_HEADERS = {
    "include/BNGrad/Dialect/Alignment.h",
    "include/BNGrad/Dialect/Role.h",
    "include/BNGrad/Dialect/Roles.def",
    "include/BNGrad/Dialect/ScheduleKind.h",
    "include/BNGrad/Dialect/Schedules.def",
    "lib/Compiler/Library/CacheEntry.h",
    "lib/Compiler/Library/CompilerLibrary.h",
    "lib/Compiler/Library/MemoryFile.h",
    "lib/Runtime/ForkLock.h",
    "lib/Runtime/Kernels/InstructionSet.h",
    "lib/Runtime/Kernels/InstructionSets.def",
    "lib/Runtime/OpDescriptor.h",
    "lib/Runtime/Operands.h",
    "lib/Transforms/Schedule/SizeRules.h",
}
INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)

# Neither CUDA nor MPI can be used in the child of a fork. Each function of lib/Compiler/Library is a Compilation,
# for whose end fork() waits.
FORK_FOLDERS = ("lib/Runtime/", "python/src/")
NO_FORK_FOLDERS = ("lib/Runtime/Cuda/", "lib/Runtime/Distributed/")
LOCK = re.compile(r"\bstd::(?:\w*mutex|once_flag|call_once|condition_variable\w*)\b"
                  r"|\bpthread_(?:mutex|rwlock|cond|once)\w*")
FORK_HANDLER = re.compile(r"\bpthread_atfork\b|\bholdDuringFork<")
MADE_BY_FIRST_CALL = re.compile(r"^[ \t]+static [^;{}()]*?(?:= \*new\b|\bImmortal<)", re.MULTILINE)
# Files whose locks live no longer than a call.
LOCKS_OF_CALLS = ("python/src/jax/Threads.cpp",)


def check_sizes(root: Path, files: list[str]) -> list[str]:
    errors = []
    for file in files:
        if file.startswith(tuple(f"{folder}/" for folder in SIZED_FOLDERS)) and file.endswith(SIZED_SUFFIXES):
            lines = len((root / file).read_text().splitlines())
            if lines > MOST_LINES:
                errors.append(f"{file}: expected at most {MOST_LINES} lines, got {lines}")
    return errors


def check_banners(root: Path, files: list[str]) -> list[str]:
    errors = []
    for file in files:
        if file.endswith((".c", ".cpp", ".def", ".h", ".td")):
            line = (root / file).read_text().split("\n", 1)[0]
            if line.startswith(("//===-", "/*===-")) and not line.endswith(("===//", "===*\\")):
                errors.append(f"{file}:1: expected a header of one line, got '{line}'")
    return errors


def find_functions(text: str) -> list[tuple[str, int, int]]:
    """The name, the first line and the number of lines after that of each function's body."""
    # Lines stay where they are.
    text = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    functions = []
    blocks = []  # that are open: whether they may hold functions, name, line
    start, line = 0, 1
    for match in re.finditer(r"[{};\n]", text):
        if match[0] == "\n":
            line += 1
            continue
        if match[0] == "{":
            head = re.sub(r"\balignas\([^()]*\)", "", text[start:match.start()]).strip()
            is_outside = all(block[0] for block in blocks)
            name = re.search(r"([\w~:]+)\s*\(", head)
            is_function = is_outside and name is not None and not head.endswith("=")
            is_container = is_outside and CONTAINER.search(head) is not None
            blocks.append((is_container, name[1] if is_function and not is_container else "", line))
        elif match[0] == "}" and blocks:
            _, name, first = blocks.pop()
            if name:
                functions.append((name, first, line - first))
        start = match.end()
    return functions


def check_functions(root: Path, files: list[str]) -> list[str]:
    errors = []
    for file in files:
        if not file.startswith(tuple(f"{folder}/" for folder in FUNCTION_FOLDERS)) or not file.endswith((".cpp", ".h")):
            continue
        for name, first, lines in find_functions((root / file).read_text()):
            if lines > MOST_FUNCTION_LINES:
                errors.append(f"{file}:{first}: expected at most {MOST_FUNCTION_LINES} lines in {name}, got {lines}")
    return errors


def check_locks(root: Path, files: list[str]) -> list[str]:
    errors = []
    for file in files:
        if (not file.startswith(FORK_FOLDERS) or file.startswith(NO_FORK_FOLDERS) or
                not file.endswith((".cpp", ".h")) or file in LOCKS_OF_CALLS):
            continue
        text = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), (root / file).read_text())
        lock, made = LOCK.search(text), MADE_BY_FIRST_CALL.search(text)
        if lock and not FORK_HANDLER.search(text):
            line = text.count("\n", 0, lock.start()) + 1
            errors.append(f"{file}:{line}: expected holdDuringFork or pthread_atfork in a file with {lock[0]}, got none")
        if made:
            line = text.count("\n", 0, made.start()) + 1
            errors.append(f"{file}:{line}: expected no static variable that the first call makes, got one")
    return errors


def check_stage(stage: str, text: str) -> list[str]:
    """Checks the CMakeLists.txt of a stage."""
    text = re.sub(r"#.*", "", text)
    libraries = LIBRARY.findall(text)
    if libraries != [f"BNGrad{stage}"]:
        return [f"expected one bngrad_add_library(BNGrad{stage}, got {libraries}"]
    errors = []
    for name in sorted(set(re.findall(r"\bBNGrad(\w+)\b", text))):
        if name in STAGES and STAGES.index(name) > STAGES.index(stage):
            errors.append(f"expected libraries of earlier stages only, got BNGrad{name}")
        elif name == "Transforms":
            errors.append("expected libraries of single stages, got BNGradTransforms")
    if stage == "ToLinalg":
        errors += [f"expected no dialect of one target, got {name}"
                   for name in sorted(set(TARGET_DIALECT.findall(text)))]
    return errors


def check_stages(root: Path, files: list[str]) -> list[str]:
    folder = "lib/Transforms"
    errors = []
    folders = {file.split("/")[2] for file in files if file.startswith(f"{folder}/") and file.count("/") > 2}
    for stage in sorted(folders):
        lists = f"{folder}/{stage}/CMakeLists.txt"
        if stage not in STAGES:
            errors.append(f"{folder}/{stage}: expected one of the stages {', '.join(STAGES)}")
        elif lists not in files:
            errors.append(f"{lists}: expected the library of the stage, got no such file")
        else:
            errors += [f"{lists}: {error}" for error in check_stage(stage, (root / lists).read_text())]
    return errors


def find_header(root: Path, file: str, name: str) -> str:
    """The path of a header that a file includes, from the root; empty: it is none of ours."""
    for folder in (Path(file).parent, Path("lib/Transforms"), Path("lib"), Path("include")):
        path = Path(os.path.normpath(folder / name))
        if (root / path).is_file():
            return path.as_posix()
    return ""


def check_include(file: str, header: str) -> str:
    """What was expected of an include between files of ours; empty: it is allowed."""
    if header in SHARED_HEADERS:
        return ""
    if file in SHARED_HEADERS:
        return "" if header.startswith("include/BNGrad/Runtime/") else "a header without MLIR"
    parts = file.split("/")
    folder = "/".join(parts[:2]) if parts[0] == "lib" else parts[0]
    if header.startswith("include/BNGrad/"):
        is_public = header.split("/")[2] in PUBLIC_HEADERS[folder.removeprefix("lib/")]
        return "" if is_public else f"a header that {folder} may include"
    if not header.startswith(f"{folder}/"):
        return "a header of the same folder, or one made for both"
    stage, other = parts[2], header.split("/")[2]
    if folder == "lib/Transforms" and {stage, other} <= set(STAGES) and STAGES.index(other) > STAGES.index(stage):
        return "a header of an earlier stage"
    return ""


def check_includes(root: Path, files: list[str]) -> list[str]:
    errors = []
    folders = {file.split("/")[1] for file in files if file.startswith("lib/") and file.count("/") > 1}
    errors += [f"lib/{folder}: expected one of {', '.join(PUBLIC_HEADERS)}" for folder in sorted(folders - {*PUBLIC_HEADERS})]
    for file in files:
        folder = file.split("/")[1] if file.startswith("lib/") else "python" if file.startswith("python/src/") else ""
        if not file.endswith((".cpp", ".h", ".c", ".def")) or not (file in SHARED_HEADERS or folder in PUBLIC_HEADERS):
            continue
        text = (root / file).read_text()
        for match in INCLUDE.finditer(text):
            header = find_header(root, file, match[1])
            error = check_include(file, header) if header else ""
            if file in SHARED_HEADERS and match[1].startswith(("mlir/", "llvm/")):
                error = "a header without MLIR"
            if error:
                line = text.count("\n", 0, match.start()) + 1
                errors.append(f"{file}:{line}: expected {error}, got {match[1]}")
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, metavar="SOURCE_ROOT",
                        default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    files = list_files(root)
    errors = check_banners(root, files) + check_sizes(root, files) + check_functions(root, files) + check_locks(root, files)
    errors += check_stages(root, files) + check_includes(root, files)
    for error in errors:
        print(error)
    print(f"structure: {len(files)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
