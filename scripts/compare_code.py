#!/usr/bin/python3
"""compare_code.py OLD NEW [--filter REGEX] [--code] [--jobs N] [--work DIR]
compare_code.py OLD --self-test

Compiles a corpus of programs with the tools of two build directories and
compares the code: for a change that must not change any. Exits 1 if any differs.

OLD and NEW are build directories (with bin/bngrad-opt and bin/bngrad-compile).
Compared for each program are the IR after the stage `apply` (neighbouring
constants, of functions and of modules, in any order: no code depends on it), the diagnostics and the
remarks. Where the IR differs, the assembly or PTX decides, which is
also compared for each benchmark shape with --code. The corpus:

  bench      the shapes of bench/, static, dynamic, strided, and fused, for
             registers of 512, 256 and 128 bits, on one thread and on eight
  forced     benchmark and odd shapes under each CPU schedule written by hand
  random     the programs of test/Integration/CPU/schedules.py
  cuda       the shapes of bench/ for sm_80, sm_90 and sm_120, under the chosen
             schedule and those of bench/gpu/items.py; the programs of
             test/Integration/CUDA
  tests      the .mlir files of test/, through both pipelines, and through
             --bngrad-apply-schedule alone

Digests of the results are kept in DIR (default: NEW/compare-code), by the tool's
own digest, so that OLD is run once; so are both results of a program that
differs.

--self-test: plants a difference in the results of one schedule and expects
exactly its programs to be reported.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Iterator

from schedule_kinds import Kind, read_kinds

ROOT = Path(__file__).resolve().parent.parent
SEPARATOR = "// -----"
# Programs that one process compiles: most of a process' time is its start.
BATCH = 16
TIMEOUT = 600
THREADS = 8
CPUS = {512: "x86-64-v4", 256: "x86-64-v3", 128: "x86-64-v2"}
REMARKS = ["--remark-policy=all", "--remark-format=emitRemark", "--remarks-filter=.*"]
CPU_PARAMETERS = [
    "threads = 8, vector_bits = 512, streaming_bytes = 1, columns = 1024, row_blocks = 32, fma = true",
    "threads = 1, vector_bits = 256, streaming_bytes = 0, columns = 64, row_blocks = 5, fma = false",
]
ODD_SHAPES = [(1, 1, 1, 1), (5, 3, 7, 2), (3, 16, 8, 8), (9, 8, 1, 33), (64, 130, 4, 4), (2, 1, 63, 65), (3, 4, 1025)]
ODD_ROWS = [(33, 5), (17, 32), (300, 8), (64, 260), (1000, 3)]


@dataclasses.dataclass(frozen=True)
class Program:
    """IR, perhaps of several modules, and how it is compiled to IR with loops and to code."""

    name: str
    text: str
    options: tuple  # of bngrad-opt
    compile: tuple = ()  # options of bngrad-compile; none: it cannot take the program
    suffix: str = ".s"
    is_bench: bool = False

    @property
    def count(self) -> int:
        return self.text.count(SEPARATOR) + 1


def load(path: str):
    """The script at `path` as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str((ROOT / path).parent))
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def cpu(name: str, text: str, schedule: str = "", bits: int = 512, threads: int = THREADS, **rest) -> Program:
    options = (
        f"threads={threads} vector-bits={bits} l1-bytes=49152 last-level-bytes=33554432"
        f" fma={'true' if bits >= 256 else 'false'} bf16-conversion=false stop-after=apply"
    )
    compile = [f"--mcpu={CPUS[bits]}", f"--threads={threads}"]
    if schedule:
        options += f" schedule={{#bngrad.schedule<{schedule}>}}"
        compile.append(f"--schedule=#bngrad.schedule<{schedule}>")
    return Program(name, text, (f"--bngrad-cpu-pipeline={options}",), tuple(compile), **rest)


def cuda(name: str, text: str, chip: str, schedule: str = "", **rest) -> Program:
    options = f"chip={chip} stop-after=apply"
    compile = ["--target=cuda", f"--chip={chip}"]
    if schedule:
        options += f" schedule={{#bngrad.schedule<{schedule}>}}"
        compile.append(f"--schedule=#bngrad.schedule<{schedule}>")
    return Program(name, text, (f"--bngrad-cuda-pipeline={options}",), tuple(compile), ".ptx", **rest)


def bench_cases(cases, kernels) -> Iterator[tuple]:
    """(case, variant, its IR) of bench/."""
    for case in cases.select(""):
        for variant in ["static", "dynamic"] + ["strided"] * (len(case.sizes) == 4):
            yield case, variant, kernels.write(case, variant)
        if case.sizes in cases.FUSED and case.type == "f32":
            for variant in kernels.FUSED:
                yield case, variant, kernels.write(case, variant)


def bench_programs(cases, kernels) -> Iterator[Program]:
    targets = [(512, THREADS), (512, 1), (256, THREADS), (128, THREADS)]
    for case, variant, text in bench_cases(cases, kernels):
        for bits, threads in targets:
            name = f"bench {case.name} {variant} {bits} bits {threads} threads"
            is_main = (bits, threads) == targets[0]
            yield cpu(name, text, bits=bits, threads=threads, is_bench=is_main)


def forced_programs(cases, kernels, kinds: list[Kind]) -> Iterator[Program]:
    shapes = [(shape, "nchw") for shape in cases.RESNET[:1] + cases.RESNET[-1:] + ODD_SHAPES]
    shapes += [(shape, "nhwc") for shape in cases.ROW_MAJOR + ODD_SHAPES + ODD_ROWS]
    for shape, layout in shapes:
        for element_type in ("f32", "bf16", "f16", "f64"):
            case = cases.Case(shape, layout, element_type)
            for variant in ("static", "dynamic"):
                text = kernels.write(case, variant)
                for kind in kinds:
                    if kind.target == "gpu" or not kind.takes("nchw" if layout == "nchw" and case.row > 1 else "nhwc"):
                        continue
                    for i, parameters in enumerate(CPU_PARAMETERS):
                        name = f"forced {kind.name} {i} {case.name} {variant}"
                        bits = int(re.search(r"vector_bits = (\d+)", parameters)[1])
                        yield cpu(name, text, f"{kind.name}, {parameters}" if kind.parameters else kind.name, bits)


def random_programs(count: int, kinds: list[Kind]) -> Iterator[Program]:
    """Masks, types of results, unused results, consumers, leading feature dims."""
    import numpy

    schedules = load("test/Integration/CPU/schedules.py")
    random = numpy.random.default_rng(schedules.SEED)
    for number in range(count):
        case = schedules.Case(number, random, kinds)
        schedule = re.fullmatch(r"#bngrad\.schedule<(.*)>", case.schedule(3))[1]
        yield cpu(f"random {case.kind} {number}", case.mlir(), schedule, case.bits)


def cuda_programs(cases, kernels) -> Iterator[Program]:
    schedules = [text for text in load("bench/gpu/items.py").SCHEDULES.values() if text]
    for case, variant, text in bench_cases(cases, kernels):
        for chip in ("sm_80", "sm_90", "sm_120"):
            yield cuda(f"cuda {case.name} {variant} {chip}", text, chip, is_bench=True)
        for i, schedule in enumerate(schedules):
            yield cuda(f"cuda {schedule.split(',')[0]} {i} {case.name} {variant}", text, "sm_90", schedule)
    programs = load("test/Integration/CUDA/programs.py")
    ptxas, emulator = (load(f"test/Integration/CUDA/{name}.py") for name in ("ptxas", "emulator"))
    found = [*emulator.quick_cases(), *emulator.long_cases()]
    for chip in ("sm_80", "sm_90", "sm_120"):
        found += ptxas.cases(chip, is_quick=False)
    for i, case in enumerate(found):
        yield cuda(f"cuda case {i} {case}", programs.Program(case).mlir, case.chip, case.schedule)


def test_programs(kinds: list[Kind]) -> Iterator[Program]:
    """Files that do not fit a pipeline give errors, which are compared as well."""
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        name = str(path.relative_to(ROOT / "test"))
        text = path.read_text()
        yield cpu(f"tests cpu {name}", text)
        for kind in kinds:
            if kind.target == "cpu" and name.startswith("Integration/"):
                yield cpu(f"tests {kind.name} {name}", text, f"{kind.name}, {CPU_PARAMETERS[0]}")
        yield cuda(f"tests cuda {name}", text, "sm_90")
        if "bngrad.schedule<" in text:
            yield Program(f"tests apply {name}", text, ("--bngrad-apply-schedule",))
            device = ("--bngrad-apply-schedule=device-arguments=true",)
            yield Program(f"tests device {name}", text, device)


def corpus(kinds: list[Kind]) -> list:
    cases, kernels = load("bench/cases.py"), load("bench/kernels.py")
    found = [*bench_programs(cases, kernels), *forced_programs(cases, kernels, kinds), *random_programs(400, kinds)]
    return found + [*cuda_programs(cases, kernels), *test_programs(kinds)]


def sort_constants(text: str) -> str:
    """`text` with the lines of constants that follow each other in order."""
    lines, constants = [], []
    for line in text.split("\n"):
        if re.match(r"\s*(%\w+ = arith\.constant |memref\.global \"private\" constant )", line):
            constants.append(line)
            continue
        lines += sorted(constants) + [line]
        constants = []
    return "\n".join(lines + sorted(constants))


class Tools:
    """The tools of one build directory, and digests of their results."""

    def __init__(self, build: Path, work: Path):
        self.bin, self.work = build.resolve() / "bin", work
        self.digests = {}
        for tool in ("bngrad-opt", "bngrad-compile"):
            if not (self.bin / tool).is_file():
                sys.exit(f"bngrad: error: expected {tool} in {self.bin}, found none")
            self.digests[tool] = hashlib.sha256((self.bin / tool).read_bytes()).hexdigest()
        (work / "digests").mkdir(parents=True, exist_ok=True)

    def run(self, tool: str, options: tuple, text: str, suffix: str = "") -> str:
        """Output, diagnostics and exit status as one text."""
        with tempfile.TemporaryDirectory() as folder:
            # Relative, so that diagnostics and symbols name no folder.
            Path(folder, "program.mlir").write_text(text)
            command = [self.bin / tool, "program.mlir", *options]
            if suffix:
                command += ["-o", "program" + suffix]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=folder)
            output = done.stdout
            if suffix and Path(folder, "program" + suffix).exists():
                output += Path(folder, "program" + suffix).read_text()
            return f"{sort_constants(output)}\n{done.stderr}\nexit status {done.returncode}\n"

    def digest(self, tool: str, options: tuple, text: str, suffix: str = "") -> str:
        """The digest of `run`, perhaps that of an earlier one."""
        key = "\0".join([self.digests[tool], *options, suffix, text])
        path = self.work / "digests" / hashlib.sha256(key.encode()).hexdigest()
        if not path.exists():
            result = hashlib.sha256(self.run(tool, options, text, suffix).encode()).hexdigest()
            partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            partial.write_text(result)
            partial.rename(path)
        return path.read_text()


def opt_arguments(programs: list) -> tuple:
    """Those of `run` for the IR of programs with the same options, together."""
    options = ("--split-input-file", "--mlir-print-local-scope", "--mlir-disable-threading", *REMARKS, *programs[0].options)
    return ("bngrad-opt", options, f"\n{SEPARATOR}\n".join(program.text for program in programs))


def code_arguments(program: Program) -> tuple:
    return ("bngrad-compile", program.compile, program.text, program.suffix)


class Comparison:
    def __init__(self, old: Tools, new: Tools, work: Path, compares_code: bool):
        self.old, self.new, self.work, self.compares_code = old, new, work, compares_code

    def differs(self, arguments: tuple) -> bool:
        return self.old.digest(*arguments) != self.new.digest(*arguments)

    def keep(self, program: Program, arguments: tuple, kind: str) -> None:
        base = self.work / (re.sub(r"[^\w.]+", "-", program.name)[:120] + "." + kind)
        for tools, end in ((self.old, ".old"), (self.new, ".new")):
            Path(str(base) + end).write_text(tools.run(*arguments))

    def compare(self, programs: list) -> list:
        """(program, status) of programs with the same options."""
        differs = [False] * len(programs)
        if self.differs(opt_arguments(programs)):
            differs = [self.differs(opt_arguments([program])) for program in programs]
        results = []
        for program, ir_differs in zip(programs, differs):
            status = "IR differs" if ir_differs else "same"
            if ir_differs:
                self.keep(program, opt_arguments([program]), "ir")
            if program.compile and program.count == 1 and (ir_differs or (self.compares_code and program.is_bench)):
                code_differs = self.differs(code_arguments(program))
                if code_differs:
                    self.keep(program, code_arguments(program), "code")
                status = "code differs" if code_differs else "same code, IR differs" if ir_differs else "same code"
            results.append((program, status))
        return results


def batches(programs: list) -> Iterator[list]:
    by_options: dict = {}
    for program in programs:
        by_options.setdefault(program.options, []).append(program)
    for found in by_options.values():
        for i in range(0, len(found), BATCH):
            yield found[i : i + BATCH]


def compare(old: Tools, new: Tools, work: Path, programs: list, compares_code: bool, jobs: int) -> dict:
    """The programs by status; prints those that differ as they are found."""
    comparison = Comparison(old, new, work, compares_code)
    found: dict = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(comparison.compare, batches(programs)):
            for program, status in results:
                found.setdefault(status, []).append(program)
                if "differs" in status:
                    print(f"{status}: {program.name}", flush=True)
    for status, of_status in sorted(found.items()):
        print(f"{status}: {len(of_status)} programs, {sum(program.count for program in of_status)} modules")
    return found


class Planted(Tools):
    """Tools that subtract once where a program under `tiles` adds."""

    def run(self, tool: str, options: tuple, text: str, suffix: str = "") -> str:
        output = super().run(tool, options, text, suffix)
        if not any("<tiles" in option for option in options):
            return output
        return re.sub(r"arith\.addf|vaddps", "arith.subf", output, count=1)


def self_test(build: Path) -> int:
    cases, kernels = load("bench/cases.py"), load("bench/kernels.py")
    programs = [p for p in forced_programs(cases, kernels, read_kinds(build / "bin" / "bngrad-opt")) if "5x3x7x2 nchw f32" in p.name and " 0 " in p.name]
    with tempfile.TemporaryDirectory() as folder:
        old, new = Tools(build, Path(folder, "old")), Planted(build, Path(folder, "new"))
        found = compare(old, new, Path(folder), programs, False, 2)
        kept = len(list(Path(folder).glob("*.ir.new")))
    expected = {p.name for p in programs if " tiles " in p.name}
    got = {p.name for p in found.get("code differs", [])}
    if not expected or got != expected or kept != len(expected) or len(found.get("same", [])) != len(programs) - len(got):
        print(f"self-test: expected {sorted(expected)} to differ, got {sorted(got)}")
        return 1
    print(f"self-test: {len(got)} planted differences in {len(programs)} programs were found, and no other")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare_code.py")
    parser.add_argument("old", type=Path, help="build directory of the code before")
    parser.add_argument("new", type=Path, nargs="?", help="build directory of the code after")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only programs whose name matches")
    parser.add_argument("--code", action="store_true", help="compare assembly and PTX of the benchmark shapes as well")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--work", type=Path, help="folder for digests and for results that differ")
    parser.add_argument("--self-test", action="store_true", help="check that a planted difference is found")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.old)
    if not arguments.new:
        parser.error("expected two build directories, got one")
    work = arguments.work or arguments.new / "compare-code"
    programs = [program for program in corpus(read_kinds(arguments.new / "bin" / "bngrad-opt")) if re.search(arguments.filter, program.name)]
    if not programs:
        parser.error(f"expected --filter to match a program, got '{arguments.filter}'")
    old, new = Tools(arguments.old, work), Tools(arguments.new, work)
    found = compare(old, new, work, programs, arguments.code, arguments.jobs)
    return int(any("code differs" in status or status == "IR differs" for status in found))


if __name__ == "__main__":
    sys.exit(main())
