#!/usr/bin/env python3
"""Searches for crashes, hangs and silent failures with libFuzzer; see
fuzz/libfuzzer/README.md.

  run.py --seconds=N [--seed=N] [--only=TARGET] [--build-dir=DIR] [--store]

Runs for N seconds in total, on two cores. Prints one line per target; exits
with 1 if a fault is ours, with 2 if a target could not be run.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import seeds
import triage

ROOT = Path(__file__).resolve().parents[2]
# Shares of the time.
TARGETS = {"ir-text": 5, "ir-bytecode": 2, "schedule": 3, "npy": 1, "ptx": 3, "runner-options": 1,
           "compile-options": 1}
CORES = 2
# Time limit per fault.
MINIMIZE_SECONDS = 60


@dataclass
class Result:
    target: str
    inputs: int = 0
    seconds: float = 0
    ours: list[str] = field(default_factory=list)
    upstreams: list[str] = field(default_factory=list)
    unreproduced: int = 0
    unjudged: int = 0
    error: str = ""


def build(directory: Path) -> None:
    """Builds the fuzzers if they are missing or out of date, as scripts/test.sh does."""
    env = dict(os.environ, BNGRAD_BUILD_DIR=str(directory), BNGRAD_BUILD_TYPE="RelWithDebInfo",
               BNGRAD_CMAKE_FLAGS="-DLLVM_USE_SANITIZER=Address;Undefined -DBNGRAD_ENABLE_ASSERTS=ON "
                                  "-DBNGRAD_BUILD_FUZZERS=ON")
    if (directory / "build.ninja").exists():
        subprocess.run(["cmake", "-DBNGRAD_BUILD_FUZZERS=ON", str(directory)], check=True, capture_output=True)
    script = f'. "{ROOT}/scripts/common.sh"; setup; build bngrad-fuzzers'
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"fuzz: {done.stderr.strip() or done.stdout.strip()}", file=sys.stderr)
        sys.exit(2)


def hunt(target: str, directory: Path, work: Path, seconds: int, seed: int) -> Path:
    """Runs a fuzzer for its share of the time."""
    here = work / target
    corpus, artifacts = here / "corpus", here / "artifacts"
    shutil.rmtree(artifacts, ignore_errors=True)
    for folder in (corpus, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    log = here / "log"
    # LeakSanitizer takes 0.2 s for an input that leaks on purpose.
    leaks = int(target == "npy")
    command = [str(directory / "fuzz" / f"fuzz-{target}"), "-fork=1", "-ignore_crashes=1", "-ignore_timeouts=1",
               "-ignore_ooms=1", f"-max_total_time={seconds}", f"-timeout={triage.SLOW_SECONDS}",
               f"-rss_limit_mb={triage.MEMORY_MB}", "-max_len=16384", "-len_control=0", f"-seed={seed}", f"-detect_leaks={leaks}",
               "-print_funcs=0", "-close_fd_mask=1", f"-artifact_prefix={artifacts}/", str(corpus),
               str(here / "seeds")]
    # Contains stacks that may not be seen again.
    env = triage.environment(directory, work)
    env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS"), f"log_path={artifacts}/stack"]))
    with open(log, "wb") as file:
        # Ends hangs that libFuzzer does not detect.
        try:
            subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                           env=env, timeout=seconds + 120)
        except subprocess.TimeoutExpired:
            pass
    return log


def count_inputs(log: Path) -> int:
    counts = re.findall(r"^#(\d+): cov:", log.read_text(errors="replace"), flags=re.M)
    return int(counts[-1]) if counts else 0


def judge(result: Result, directory: Path, work: Path, seconds: float, store: bool) -> None:
    """Runs failing inputs again, separates upstream's faults, minimizes ours."""
    fuzzer = triage.Fuzzer(result.target, directory, work)
    llvm_bin = triage.find_llvm_bin(directory)
    known: set[str] = set()
    deadline = time.monotonic() + seconds
    artifacts = [path for path in (work / result.target / "artifacts").iterdir()
                 if not path.name.startswith(("slow-unit", "stack"))]
    for path in sorted(artifacts, key=lambda each: each.stat().st_size):
        left = deadline - time.monotonic()
        if left < 0:
            result.unjudged += 1
            continue
        data = path.read_bytes()
        outcome = fuzzer.run(data)
        if not outcome.failed:
            result.unreproduced += 1
        elif outcome.signature not in known:
            known.add(outcome.signature)
            reason = triage.is_upstreams(fuzzer, data, outcome, llvm_bin)
            if not reason:
                data = triage.minimize(fuzzer, data, outcome.signature, max(5, min(MINIMIZE_SECONDS, left / 4)))
                # mlir-opt stops at the first op of ours, which minimization may have removed.
                reason = triage.is_upstreams(fuzzer, data, outcome, llvm_bin)
            keep(result, data, outcome, reason, work, store)


def keep(result: Result, data: bytes, outcome: triage.Outcome, reason: str, work: Path, store: bool) -> None:
    """Writes a fault to the folder `ours` or `upstream`, with its log."""
    folder = work / result.target / ("upstream" if reason else "ours")
    folder.mkdir(exist_ok=True)
    path = folder / triage.name_of(outcome.signature)
    if reason:
        result.upstreams.append(outcome.signature)
    else:
        result.ours.append(outcome.signature)
        if store:
            stored = ROOT / "test" / "Fuzz" / "inputs" / result.target
            stored.mkdir(parents=True, exist_ok=True)
            (stored / path.name).write_bytes(data)
    path.write_bytes(data)
    path.with_suffix(".log").write_text(f"{outcome.signature}\n{reason}\n{outcome.log}")


def run_target(target: str, directory: Path, work: Path, seconds: int, seed: int, store: bool) -> Result:
    result = Result(target)
    start = time.monotonic()
    try:
        log = hunt(target, directory, work, seconds, seed)
        result.seconds = time.monotonic() - start
        result.inputs = count_inputs(log)
        judge(result, directory, work, max(20, seconds / 3), store)
        if result.inputs == 0:
            result.error = f"nothing was run, see {log}"
    except (OSError, subprocess.SubprocessError) as error:
        result.error = str(error)
    return result


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, required=True, help="total time for all targets, on two cores")
    parser.add_argument("--seed", type=int, default=0, help="0: from the clock; printed")
    parser.add_argument("--only", choices=TARGETS, help="one target")
    parser.add_argument("--build-dir", type=lambda text: Path(text).resolve(), default=ROOT / "build" / "asan")
    parser.add_argument("--no-build", action="store_true", help="use the existing fuzzers")
    parser.add_argument("--store", action="store_true", help="copy inputs with our faults to test/Fuzz/inputs")
    arguments = parser.parse_args()
    if arguments.seconds < 1:
        parser.error(f"expected --seconds to be at least 1, got {arguments.seconds}")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    seed = arguments.seed or int(time.time()) % 2**31
    print(f"fuzz: seed {seed}", flush=True)
    if not arguments.no_build:
        build(arguments.build_dir)
    work = arguments.build_dir / "fuzz" / "work"
    targets = {arguments.only: 1} if arguments.only else TARGETS
    shares = sum(targets.values())
    cores = min(CORES, len(targets))
    (work / "files").mkdir(parents=True, exist_ok=True)
    seconds = {target: max(3, arguments.seconds * cores * share // shares) for target, share in targets.items()}
    # All seeds run first, so use few to leave time for mutations. Bytecode is generated from text.
    for target in {**targets, **({"ir-text": 0} if "ir-bytecode" in targets else {})}:
        seeds.write_seeds(target, arguments.build_dir, work, max(20, seconds.get(target, 200)), seed)
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        runs = [pool.submit(run_target, target, arguments.build_dir, work, seconds[target], seed, arguments.store)
                for target in targets]
        results = [run.result() for run in runs]
    for each in results:
        rate = each.inputs / each.seconds if each.seconds else 0
        print(f"fuzz: {each.target}: {each.inputs} inputs ({rate:.0f} a second), {len(each.ours)} faults of ours, "
              f"{len(each.upstreams)} of upstream's set aside, {each.unreproduced} not seen again, "
              f"{each.unjudged} not judged in time; {work / each.target}{'; ' + each.error if each.error else ''}")
        for signature in each.ours:
            print(f"fuzz: {each.target}: fault: {triage.name_of(signature)}: {signature}")
    if any(each.error for each in results):
        return 2
    return int(any(each.ours for each in results))


if __name__ == "__main__":
    sys.exit(main())
