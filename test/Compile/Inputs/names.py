"""names.py TABLE DIR CLANG [--long]: headers compile with any names of functions and parameters.

The parameters of functions get every name of TABLE (lib/Transforms/CAbi/CNames.def), some names for each of its
patterns, and similar names. The header must compile in the oldest and newest versions of C and C++ that clang and gcc
support, or with --long in every version, after all headers of the standards and before them. As the name of a function, each must be rejected with the
name, its meaning and the version that introduced it; similar names must be accepted.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROW = re.compile(r"^BNGRAD_C_NAMES\((\w+),((?:\s*\"[^\"]*\",?)+)\)", re.MULTILINE)
# Replacements of a `*`, and suffixes of functions of mathematics.
RESTS = ["MAX", "8", "X_1"]
SUFFIXES = ["", "f", "l", "f16", "d128x"]
# Names that no header or library of the table defines.
FREE = ["ok", "import", "module", "override", "final", "a__b", "a_", "gradient", "scale2", "X", "i", "Null", "eof",
        "std2", "total", "island", "strided", "memory", "EMA", "bn_grad_t", "naked", "x" * 10000]
# Names that the header itself uses, and names that are not identifiers.
OURS = ["bngrad_memref_f32_1_t", "bngradCudaTakeStatus", "BNGRAD_GENERATED_A_H", "omp_get_num_threads", "kmp_x",
        "mgpuLaunchKernel"]
RESERVED = ["_x", "_X", "__x", "_mlir_ciface_ok", "_Bool", "_Alignas"]
INVALID = ["", "a b", "1a", "a.b", "a-b", 'a\\22b', "a\\0Ab", "na\\C3\\AFve", "\\00", "*/", "a," + "b" * 10000]
RENAMED = ("Keyword", "Macro", "UsedType")
HEADERS = {
    "c": "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg "
         "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype",
    "c++": "cassert ccomplex cctype cerrno cfenv cfloat cinttypes ciso646 climits clocale cmath csetjmp csignal "
           "cstdarg cstdbool cstddef cstdint cstdio cstdlib cstring ctime cwchar cwctype algorithm atomic complex "
           "functional string vector errno.h limits.h math.h signal.h stdio.h stdlib.h string.h time.h unistd.h",
}
VERSIONS = {"c": ["c99", "c2x", "c11", "c17", "gnu99", "gnu17"],
            "c++": ["c++11", "c++2b", "c++14", "c++17", "c++20", "gnu++17"]}
# The first of them, without --long.
NUM_QUICK_VERSIONS = 2


def read_table(path: str) -> dict[str, tuple[str, str, list[str]]]:
    """The meaning of each name: kind, place, versions."""
    names = {}
    with open(path) as file:
        rows = ROW.findall(file.read())
    for kind, rest in rows:
        where, c, _, cxx, _, *words = re.findall(r'"([^"]*)"', rest)
        for word in "".join(words).split():
            rests = RESTS if word.endswith("*") else SUFFIXES[:3] if kind == "Math" else [""]
            for rest in rests:
                names.setdefault(word.rstrip("*") + rest, (kind, where, [v for v in (c, cxx) if v]))
    return names


def write_function(name: str, parameters: list[str]) -> str:
    arguments = ", ".join(f'%a{i}: {"tensor<2xf32>" if i % 2 else "f32"} loc("{p}")' for i, p in enumerate(parameters))
    return f'func.func @"{name}"({arguments}) {{ return }}\n'


def compile_ir(folder: str, name: str, text: str) -> str:
    """The header of `text`."""
    with open(f"{folder}/{name}.mlir", "w") as file:
        file.write(text)
    run = subprocess.run(["bngrad-compile", f"{folder}/{name}.mlir", "-o", f"{folder}/{name}.mlir.mlir",
                          f"--header={folder}/{name}.h"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{name}: {run.stderr}")
    return f"{folder}/{name}.h"


def find_compilers(clang: str) -> list[tuple[str, str, str]]:
    """The available (language, compiler, version)."""
    found = []
    for language, compilers in (("c", [clang, "gcc"]), ("c++", [clang, "g++"])):
        for compiler in filter(shutil.which, compilers):
            for version in VERSIONS[language]:
                run = subprocess.run([compiler, "-x", language, f"-std={version}", "-fsyntax-only", os.devnull],
                                     capture_output=True)
                if run.returncode == 0:
                    found.append((language, compiler, version))
    return found


def compile_header(folder: str, headers: list[str], job: tuple[str, str, str]) -> str:
    """The errors of the compiler of `job` for `headers`."""
    language, compiler, version = job
    includes = []
    for header in HEADERS[language].split():
        name = header if language == "c++" else header + ".h"
        includes.append(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif")
    ours = [f'#include "{header}"' for header in headers]
    problems = ""
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    # Some headers of the standards are deprecated, or need features that a version lacks.
    for order, text, flags in (("alone", ours, strict), ("first", ours + includes, ["-w"]),
                               ("last", includes + ours, ["-w"])):
        source = f"{folder}/{order}-{os.path.basename(compiler)}-{version}.{'c' if language == 'c' else 'cpp'}"
        with open(source, "w") as file:
            file.write("\n".join(text) + "\n")
        run = subprocess.run([compiler, f"-std={version}", "-fsyntax-only", *flags, source], capture_output=True, text=True)
        if run.returncode != 0:
            problems += f"{compiler} -std={version}, {order}:\n{run.stderr[:2000]}\n"
    return problems


def check_parameters(folder: str, clang: str, names: dict[str, tuple[str, str, list[str]]]) -> list[str]:
    words = [*names, *FREE, *OURS, *RESERVED, *INVALID]
    functions = [words[i:i + 40] for i in range(0, len(words), 40)]
    header = compile_ir(folder, "parameters", "".join(write_function(f"p{i}", f) for i, f in enumerate(functions)))
    free = compile_ir(folder, "free-names", "".join(write_function(name, ["a"]) for name in FREE))
    with open(header) as file:
        text = file.read()
    declared = set(re.findall(r"[ *](\w+)[,)]", text))
    problems = [f"expected parameter {w} to be renamed" for w, (kind, _, _) in names.items()
                if kind in RENAMED and w in declared]
    problems += [f"expected parameter {w} to be renamed" for w in OURS + RESERVED if w in declared]
    problems += [f"expected parameter {w} to keep its name" for w in FREE + ["gamma", "index", "std"] if w not in declared]
    compilers = find_compilers(clang)
    if len(compilers) < len(VERSIONS["c"]) + len(VERSIONS["c++"]):
        problems.append(f"expected a compiler for every version, got {compilers}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += filter(None, pool.map(lambda job: compile_header(folder, [header, free], job), compilers))
    return problems


def describe(meaning: tuple[str, str, list[str]]) -> str:
    """The expected error for a name, as a regular expression."""
    kind, where, versions = meaning
    what = {"Keyword": "a keyword", "Macro": f"a macro of {where}", "Namespace": "a namespace"}.get(
        kind, f"declared in {where}" if where else "a function")
    return re.escape(what) + "(?: since| in) " + re.escape(" and ".join(versions))


def check_functions(folder: str, names: dict[str, tuple[str, str, list[str]]]) -> list[str]:
    expected = {name: describe(meaning) for name, meaning in names.items()}
    expected |= {name: "reserved for the runtime libraries" for name in OURS}
    expected |= {name: "names with a leading underscore are reserved since C99 and C[+][+]11" for name in RESERVED}
    expected |= {name: "not a C identifier" for name in INVALID}
    with open(f"{folder}/functions.mlir", "w") as file:
        file.writelines(f'func.func @"{name}"() {{ return }}\n' for name in expected)
    run = subprocess.run(["bngrad-opt", "--bngrad-export-c", f"{folder}/functions.mlir"], capture_output=True, text=True)
    errors = re.findall(r"^.*:(\d+):1: error: (.*)$", run.stderr, re.MULTILINE)
    if len(errors) != len(expected):
        return [f"expected {len(expected)} errors, got {len(errors)}:\n{run.stderr[-1000:]}"]
    problems = []
    for (name, reason), (_, error) in zip(expected.items(), errors):
        shown = name if len(name) <= 80 else name[:80] + "..."
        pattern = re.escape(f"expected a name that C can call, got '{shown}' (") + reason + r"\)"
        if not re.fullmatch(pattern, error):
            problems.append(f"@{name}: expected '{pattern}', got '{error}'")
    return problems


def main() -> None:
    table, folder, clang, *options = sys.argv[1:]
    if "--long" not in options:
        for versions in VERSIONS.values():
            del versions[NUM_QUICK_VERSIONS:]
    names = read_table(table)
    if len(names) < 1500:
        sys.exit(f"{table}: expected more than 1500 names, got {len(names)}")
    problems = check_functions(folder, names) + check_parameters(folder, clang, names)
    sys.exit("\n".join(problems) or 0)


main()
