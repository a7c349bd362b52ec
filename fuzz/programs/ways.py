"""The ways in which a program is compiled and run, and the check of its results.

A way is a string, so that a report can name it:

    cpu [threads=N] [schedule=TEXT] [entry=ciface] [mcpu=NAME] [from=PIPELINE] [form=generic|bytecode]
    cuda chip=sm_XX [schedule=TEXT] [from=...] [form=...]
    runner target=cpu|cuda-emulator [chip=sm_XX]

`from` first runs a pipeline of bngrad-opt and compiles its output: to-linalg, or a stage at which the pipeline of the
target stops. `cpu` and `cuda` call a shared object of bngrad-compile, which may hold many programs.
"""

import os
import pickle
import re
import sys
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import numpy as np

from bounded import Bounded
from execution import COMPILE_SECONDS, Case, Fault, Tools, compare, failed, parse, run
from floats import STORAGE
from program import Program, expected, make_data
from runner import run_runner
from writer import join, result_types, write

HERE = Path(__file__).resolve().parent


def module(cases: Sequence[Case]) -> bytes:
    return "\n".join(write(case.program, case.name) for case in cases).encode()


def compile_cases(tools: Tools, cases: Sequence[Case], way: str, output: Path) -> Optional[Fault]:
    options = parse(way)
    seconds = COMPILE_SECONDS * (1 if len(cases) == 1 else 3)
    text, seed = module(cases), cases[0].seed
    flags = []
    start, form = options.get("from"), options.get("form")
    if start or form:
        words = f"stop-after={start}" + (f" chip={options['chip']}" if "chip" in options else "")
        pipeline = f"--bngrad-{'cpu' if options['how'] == 'cpu' else 'cuda'}-pipeline={words}"
        passes = [] if not start else ["--bngrad-to-linalg"] if start == "to-linalg" else [pipeline]
        forms = {"generic": ["--mlir-print-op-generic"], "bytecode": ["--emit-bytecode"],
                 "locations": ["--mlir-print-debuginfo"], "verified": ["--verify-roundtrip"], None: []}[form]
        command, before = [tools.binaries / "bngrad-opt", "-", *passes, *forms], text
        code, error, text = run(command, seconds, stdin=text)
        if code != 0:
            return failed(seed, way, code, error, "bngrad-opt", command, before)
    if options["how"] == "cuda":
        flags += ["--target=cuda", f"--chip={options['chip']}"]
    for name in ("threads", "schedule", "mcpu"):
        if name in options:
            flags.append(f"--{name}={options[name]}")
    command = [tools.binaries / "bngrad-compile", "-", "-o", output, *flags]
    code, error, _ = run(command, seconds, stdin=text)
    if code == 0:
        return None
    return failed(seed, way, code, error, "bngrad-compile", command if len(cases) == 1 else (), text)


def array_spec(type, layout, shift: int, bits: Optional[np.ndarray] = None) -> Dict:
    spec = {"shape": type.shape, "storage": STORAGE[type.element], "layout": layout, "shift": shift}
    return {**spec, "bits": bits} if bits is not None else spec


def call_spec(case: Case, way: str) -> Dict:
    program = case.program
    is_static = program.form == "tensor" and not any(any(a.type.dynamic) for a in program.arguments)
    is_static &= not any(any(t.dynamic) for t in result_types(program))
    random = np.random.default_rng([case.seed, 11])

    def shift() -> int:
        return int(random.integers(4)) * int(random.integers(2))
    layouts = program.result_layouts or [None] * len(program.returns)
    joined = program.joined_results()
    results = [(join(t, program.joined, len(joined)), None) if i in joined else (t, l)
               for i, (t, l) in enumerate(zip(result_types(program), layouts)) if i not in joined[1:]]
    return {
        "name": case.name, "entry": "static" if is_static and "entry=ciface" not in way else "ciface",
        "arguments": [array_spec(a.type, a.layout, shift(), make_data(a)) for a in program.arguments],
        "results": [array_spec(t, l, shift()) for t, l in results],
    }


def parts_of(program: Program, results: List[np.ndarray]) -> List[np.ndarray]:
    """One array for each result, split from shared ones."""
    joined = program.joined_results()
    if not joined:
        return results
    parts, rest = iter(np.moveaxis(results[joined[0]], program.joined, 0)), iter(
        results[:joined[0]] + results[joined[0] + 1:])
    return [np.array(next(parts if i in joined else rest), order="C") for i in range(len(program.returns))]


def call_cases(tools: Tools, cases: Sequence[Case], way: str, output: Path):
    """For each case, its results or None, and its faults."""
    options = parse(way)
    job, answers = output.with_suffix(".job"), output.with_suffix(".answers")
    calls = [call_spec(case, way) for case in cases]
    is_cuda = options["how"] == "cuda"
    job.write_bytes(pickle.dumps({"so": str(output), "emulator": is_cuda and str(tools.emulator), "calls": calls}))
    answers.write_bytes(b"")
    environment = {}
    if is_cuda:
        environment = {"PTX_EMULATOR_CHIP": options["chip"].split(",")[0], "PTX_EMULATOR_BUDGET": "200000000"}
    code, error, _ = run([sys.executable, HERE / "native.py", job, answers], 60 + 20 * len(cases), environment)
    texts = re.split(r"@@call \d+\n", error)[1:]
    found = []
    with open(answers, "rb") as file:
        for case, text in zip(cases, texts):
            try:
                answer = pickle.load(file)
            except EOFError:
                found.append((None, [failed(case.seed, way, code, text, "the call")]))
                break
            faults = [Fault(case.seed, way, f.split(":")[0], f) for f in answer["faults"]]
            if text.strip():
                # The error of the emulator is more informative than the results.
                faults = [Fault(case.seed, way, "emulator", text.strip())]
            found.append((parts_of(case.program, answer["results"]), faults))
    if not found:
        return [(None, [failed(case.seed, way, code, error, "loading")]) for case in cases]
    if len(found) < len(cases):  # Cases after a crash run again without it.
        found += call_cases(tools, cases[len(found):], way, output)
    return found


def named_by(fault: Fault, cases: Sequence[Case]):
    """The program that a diagnostic names by its line, and the others."""
    line = re.search(r"<stdin>:(\d+):", fault.text)
    if fault.kind != "refused" or not line:
        return None
    end = 1
    for place, case in enumerate(cases):
        end += write(case.program, case.name).count("\n") + 1
        if int(line[1]) < end:
            return [case], [*cases[:place], *cases[place + 1:]]
    return None


def run_way(tools: Tools, cases: Sequence[Case], way: str, values: Dict[int, List[Bounded]], kept: Dict) -> List[Fault]:
    """Runs all cases; `kept` has the results of each seed by way, for bitwise comparison."""
    if parse(way)["how"] == "runner":
        return [fault for case in cases for fault in run_runner(tools, case, way, values[case.seed])]
    output = tools.directory / f"{os.getpid()}.so"
    fault = compile_cases(tools, cases, way, output)
    if fault is not None:
        if len(cases) == 1:
            return [fault]
        parts = named_by(fault, cases) or (cases[:len(cases) // 2], cases[len(cases) // 2:])
        return [f for part in parts for f in run_way(tools, part, way, values, kept)]
    faults: List[Fault] = []
    for case, (results, found) in zip(cases, call_cases(tools, cases, way, output)):
        if results is not None and not any(f.kind in ("status", "emulator") for f in found):
            found = found + compare(case, way, results, values[case.seed])
            kept.setdefault(case.seed, {})[way] = results
        faults += found
    return faults


def differ(case: Case, way: str, kept: Dict) -> List[Fault]:
    """Compares the results with those of 1 thread: they must be bitwise identical."""
    base = re.sub(r" threads=\d+", " threads=1", way)
    ways = kept.get(case.seed, {})
    if base == way or base not in ways or way not in ways:
        return []
    same = all(np.array_equal(a, b) for a, b in zip(ways[base], ways[way]))
    return [] if same else [Fault(case.seed, way, "threads", f"results differ from those of '{base}'")]


def values_of(cases: Sequence[Case]) -> Dict[int, List[Bounded]]:
    return {case.seed: expected(case.program) for case in cases}
