"""Runs random programs in many ways and compares their results with bounds.

Usage: hunt.py --bin=DIR [--kind=programs|views|special|chains] [--seed=N [--keep]] [--first=N] [--count=N] [--seconds=N]
               [--processes=N] [--way=WAY] [--output=DIR] [--reduce=SECONDS] [--by-commit]
               [--ignore-known] [--replay=FILE...] [--self-test]

One seed is one program: `--seed=N` runs it in all ways, `--way` in the way of a report. A batch of seeds shares the
ways that its first seed selects. Each fault is a line `FAULT --kind=K --seed=N --way='...': TEXT`; the first of a sort
is reduced and written to the output folder as a case (test/Fuzz/cases). The last line is
`KIND: N programs, R runs, F faults (S sorts), seeds A to B`.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import known
from execution import Case, Fault, Tools
from generate import PROGRAM_KINDS, generate
from program import Program
from reduce import reduce
from schedules import read_kinds, ways_of
from ways import differ, run_way, values_of
from writer import write

BATCH = 10
RUNNER_SHARE = 2  # one of this many batches runs a program by bngrad-runner


class Task(NamedTuple):
    kind: str
    seeds: Tuple[int, ...]
    ways: Tuple[str, ...]
    tools: Tools


def run_case(tools: Tools, case: Case, ways) -> Tuple[List[Fault], int]:
    return run_cases(tools, [case], ways)


def run_cases(tools: Tools, cases: List[Case], ways) -> Tuple[List[Fault], int]:
    values = values_of(cases)
    kept: Dict = {}
    faults: List[Fault] = []
    for way in ways:
        faults += run_way(tools, cases, way, values, kept)
        faults += [fault for case in cases for fault in differ(case, way, kept)]
    return faults, len(ways) * len(cases)


def work(task: Task) -> Tuple[Task, List[Fault], int]:
    tools = Tools(task.tools.binaries, Path(tempfile.mkdtemp(dir=task.tools.directory)))
    try:
        cases = [Case(seed, generate(seed, task.kind)) for seed in task.seeds]
        faults, runs = run_cases(tools, cases, task.ways)
        if len(cases) > 1 and task.seeds[0] // BATCH % RUNNER_SHARE == 0:
            chosen = cases[task.seeds[0] // (BATCH * RUNNER_SHARE) % len(cases)]
            target = "cpu" if task.seeds[0] // (BATCH * RUNNER_SHARE) % 2 else "cuda-emulator chip=sm_90"
            more, count = run_case(tools, chosen, [f"runner target={target}"])
            faults, runs = faults + more, runs + count
        return task, faults, runs
    except Exception:
        # An error of the hunter counts as a fault, and the search continues.
        return task, [Fault(task.seeds[0], task.ways[0], "hunter", traceback.format_exc())], 0
    finally:
        shutil.rmtree(tools.directory, ignore_errors=True)


def ways_for(fault: Fault) -> List[str]:
    """The way of a fault, and the way that it was compared with."""
    if fault.kind == "threads":
        return [re.sub(r" threads=\d+", " threads=1", fault.way), fault.way]
    return [fault.way]


def make_smaller(tools: Tools, kind: str, fault: Fault, seconds: float) -> Program:
    tools = Tools(tools.binaries, Path(tempfile.mkdtemp(dir=tools.directory)))

    def fails(program: Program) -> bool:
        found, _ = run_case(tools, Case(fault.seed, program), ways_for(fault))
        return any(f.signature == fault.signature for f in found)

    program = generate(fault.seed, kind)
    try:
        return reduce(program, fails, seconds) if fails(program) else program
    finally:
        shutil.rmtree(tools.directory, ignore_errors=True)


def case_text(case: Case, ways: List[str], fault: str) -> str:
    """A case for test/Fuzz/cases: the program as IR for readers, and as data for the evaluator."""
    first = fault.splitlines()[0] if fault else ""
    lines = [f"// {first[:300]}", "", "// REQUIRES: numpy",
             "// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s", ""]
    lines += [f"// WAY: {way}" for way in ways]
    lines += [f"// PROGRAM: {json.dumps(case.program.to_json())}", f"// SEED: {case.seed}", ""]
    return "\n".join(lines) + "\n" + write(case.program, case.name)


def replay(tools: Tools, path: str) -> int:
    """Runs a stored case; 0 if there is no fault."""
    text = Path(path).read_text()
    ways = re.findall(r"^// WAY: (.*)$", text, re.M)
    program = Program.from_json(json.loads(re.search(r"^// PROGRAM: (.*)$", text, re.M)[1]))
    case = Case(int(re.search(r"^// SEED: (.*)$", text, re.M)[1]), program)
    faults, runs = run_case(tools, case, ways)
    for fault in faults:
        print(f"FAULT {path} --way='{fault.way}': {fault.kind}: {fault.text}")
    print(f"{os.path.basename(path)}: {runs} runs, {len(faults)} faults")
    return 1 if faults or not runs else 0


class Report:
    def __init__(self, options, tools: Tools):
        self.options, self.tools = options, tools
        self.sorts: Counter = Counter()
        self.seeds: Dict[str, List[int]] = {}
        self.programs = self.runs = self.set_aside = 0

    def add(self, task: Task, faults: List[Fault], runs: int) -> None:
        self.programs += len(task.seeds)
        self.runs += runs
        for fault in faults:
            if known.is_known(fault.signature):
                self.set_aside += 1
                continue
            self.sorts[fault.signature] += 1
            self.seeds.setdefault(fault.signature, []).append(fault.seed)
            if self.sorts[fault.signature] <= 3:
                print(f"FAULT --kind={task.kind} --seed={fault.seed} --way='{fault.way}': {fault.kind}: "
                      f"{fault.text[:600]}", flush=True)
            if self.sorts[fault.signature] == 1 and self.options.reduce:
                self.store(task.kind, fault)

    def store(self, kind: str, fault: Fault) -> None:
        program = make_smaller(self.tools, kind, fault, self.options.reduce)
        name = re.sub(r"[^a-z0-9]+", "-", fault.signature.lower()).strip("-")[:60]
        path = self.options.output / f"{kind}-{fault.seed}-{name}.mlir"
        path.write_text(case_text(Case(fault.seed, program), ways_for(fault), f"{fault.kind}: {fault.text}"))
        print(f"reduced to {path}", flush=True)


def hunt(options, tools: Tools) -> int:
    report = Report(options, tools)
    kinds = read_kinds(tools.binaries / "bngrad-opt")
    started = time.monotonic()
    next_seed, last = options.first, options.first + options.count if options.count else None
    pending = set()
    shown = started
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        while True:
            while len(pending) < options.processes and (last is None or next_seed < last) and (
                    options.seconds is None or time.monotonic() - started < options.seconds):
                end = min(next_seed + BATCH, last or next_seed + BATCH)
                seeds = tuple(range(next_seed, end))
                ways = (options.way,) if options.way else tuple(ways_of(next_seed, kinds))
                pending.add(pool.submit(work, Task(options.kind, seeds, ways, tools)))
                next_seed = end
            if not pending:
                break
            done, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                report.add(*future.result())
            if time.monotonic() - shown > 60:
                shown = time.monotonic()
                print(f"{options.kind}: {report.programs} programs, {report.runs} runs, "
                      f"{sum(report.sorts.values())} faults, at seed {next_seed}", flush=True)
    for signature, count in report.sorts.most_common():
        print(f"  {count} x {signature} (seeds {report.seeds[signature][:8]})")
    aside = f", {report.set_aside} known set aside" if report.set_aside else ""
    print(f"{options.kind}: {report.programs} programs, {report.runs} runs, {sum(report.sorts.values())} faults "
          f"({len(report.sorts)} sorts){aside}, seeds {options.first} to {next_seed - 1}")
    return 1 if report.sorts or not report.programs else 0


def run_one(options, tools: Tools) -> int:
    """One seed, in all ways or in one."""
    case = Case(options.seed, generate(options.seed, options.kind))
    ways = [options.way] if options.way else ways_of(
        options.seed, read_kinds(tools.binaries / "bngrad-opt"), everything=True)
    if options.keep:
        path = options.output / f"{options.kind}-{options.seed}.mlir"
        path.write_text(case_text(case, ways, "kept"))
        print(f"kept as {path}")
    faults, runs = run_case(tools, case, ways)
    for fault in faults:
        print(f"FAULT --kind={options.kind} --seed={fault.seed} --way='{fault.way}': {fault.kind}: {fault.text}")
    if faults and options.reduce:
        Report(options, tools).store(options.kind, faults[0])
    print(f"{options.kind}: 1 program, {runs} runs, {len(faults)} faults, seed {options.seed}")
    return 1 if faults else 0


def count_commits() -> int:
    """The number of commits of this repository; 1 if there is no repository."""
    done = subprocess.run(["git", "-C", Path(__file__).parent, "rev-list", "--count", "HEAD"], capture_output=True,
                          text=True)
    return int(done.stdout) if done.returncode == 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of bngrad-compile, bngrad-opt, bngrad-runner")
    parser.add_argument("--kind", choices=list(PROGRAM_KINDS), default="programs")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep", action="store_true", help="write the program of --seed to the output folder")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--by-commit", action="store_true", help="first seed: 1000 times the number of commits")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--way")
    parser.add_argument("--output", type=Path, default=Path("fuzz-output"))
    parser.add_argument("--reduce", type=float, default=0, help="seconds per sort of fault")
    parser.add_argument("--ignore-known", action="store_true", help="as if known.py were empty")
    parser.add_argument("--replay", nargs="+")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.ignore_known:
        known.forget()
    with tempfile.TemporaryDirectory(prefix="bngrad-fuzz-") as directory:
        tools = Tools(options.bin.resolve(), Path(directory))
        if options.replay:
            known.forget()
            return max(replay(tools, path) for path in options.replay)
        if options.self_test:
            from mistakes import self_test
            return self_test(options, tools)
        options.output.mkdir(parents=True, exist_ok=True)
        if options.by_commit:
            options.first = 1000 * count_commits()
        if options.seed is not None:
            return run_one(options, tools)
        if options.count is None and options.seconds is None:
            options.count = 100
        return hunt(options, tools)


if __name__ == "__main__":
    sys.exit(main())
