"""Mutants of lib/ made by machine; scripts/mutants.sh --generate calls this.

Makes all edits that sites.py knows, takes a share, builds them in one copy of
the sources (schemata.py), notes which tests reach which, and runs those tests
until one notices. A mutant that none notices must be listed in
test/mutants-equivalent.txt, or it fails the run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path

import report
import runs
import sites
from runs import FAILED, HUNG, PASSED, SKIPPED, Recording, Suite
from schemata import OutOfTime, Schemata
from sites import Mutant

ROOT = Path(__file__).resolve().parents[2]
# The mathematics, the stages from fuse to apply, kernels, and the verifier.
FILES = (r"^lib/(Dialect/BNGrad(Ops|Dialect)|Transforms/(ToLinalg/(GradientBuilder|Fuse)"
         r"|Schedule/(Choose\w+|Group|OnePassLayout|ScheduledGroup|Target|CudaChip)"
         r"|Layout/(DenseForms|MergeLoops)|Apply/(ApplySchedule|GroupEmitter|Sums|ElementCloner)"
         r"|Apply/CPU/\w+|Apply/GPU/(EmitKernels|Gpu\w*|OnePass\w*|TwoPass)))\.cpp$")
NUMBERS_OF_FILE = 2000
DOES_NOT_COMPILE, UNREACHED, SURVIVED, KILLED = "does not compile", "not reached", "survived", "killed"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/mutants.sh --generate", allow_abbrev=False)
    parser.add_argument("--seconds", type=float,
                        help="end the build, and begin no further test of a mutant, after this time")
    parser.add_argument("--percent", type=float, default=100,
                        help="how many of all are looked at, always the same ones")
    parser.add_argument("--count", type=int, help="how many of those are run (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="which of those are run")
    parser.add_argument("--files", default=FILES, help="a regular expression for the files to mutate")
    parser.add_argument("--most-files", type=int, help="how many files the share is taken from (default: all)")
    parser.add_argument("--again", action="store_true", help="those that survived the last run, in the same build")
    parser.add_argument("--only", help="a regular expression for the mutants of the last run to run again")
    parser.add_argument("--first-stage", type=int, default=1,
                        help="where to begin, with --again after a run that was ended")
    parser.add_argument("--stages", type=int, default=len(runs.STAGES), help="how many stages of tests")
    parser.add_argument("--report", action="store_true",
                        help="write docs/mutation.md")
    parser.add_argument("--least", type=float,
                        help="fail if fewer percent are killed, not at the first survivor")
    parser.add_argument("--list", action="store_true", help="print the share and end")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "generated-mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    return parser.parse_args()


def find_enums() -> dict[str, list[str]]:
    """The enumerators of our enums, in C++ and TableGen."""
    enums: dict[str, list[str]] = {}
    for path in [*ROOT.glob("lib/**/*.[ch]*"), *ROOT.glob("include/**/*.[ht]*")]:
        text = path.read_text()
        for match in re.finditer(r"enum class (\w+)[^{;]*\{([^}]*)\}", text):
            enums[match.group(1)] = re.findall(r"(\w+)(?:\s*=[^,]*)?\s*(?:,|$)", match.group(2).strip())
        for match in re.finditer(r'I32EnumAttr<\s*"(\w+)".*?\]>', text, re.S):
            enums[match.group(1)] = re.findall(r'I32EnumAttrCase<"(\w+)"', match.group(0))
    enums["IteratorType"] = ["parallel", "reduction"]
    return enums


def find_pool(files: str) -> list[Mutant]:
    """All mutants of the files that match, in a fixed order."""
    enums = find_enums()
    paths = sorted([*ROOT.glob("lib/**/*.cpp"), *ROOT.glob("lib/**/*.h")])
    signatures: dict[str, list[list[str]]] = defaultdict(list)
    for path in [*paths, *ROOT.glob("include/**/*.h")]:
        for name, types in sites.signatures_of(path.read_bytes()).items():
            signatures[name] += types
    pool: list[Mutant] = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        if re.search(files, name):
            pool += sites.find_mutants(name, path.read_bytes(), enums, signatures)
    return pool


def take_share(pool: list[Mutant], arguments: argparse.Namespace) -> list[Mutant]:
    """A random share that depends on the seed and on the text of mutants, not on their lines."""
    def luck(seed: int, text: str) -> float:
        return int(hashlib.sha1(f"{seed} {text}".encode()).hexdigest()[:12], 16) / 16**12

    pool = [m for m in pool if 100 * luck(1, m.key) < arguments.percent]
    if arguments.most_files:
        # Files are drawn at random, weighted by their size.
        sizes = Counter(m.file for m in pool)
        chance = random.Random(arguments.seed)
        order = sorted(sizes, key=lambda f: chance.random() ** (1 / sizes[f]), reverse=True)
        pool = [m for m in pool if m.file in order[:arguments.most_files]]
    if arguments.count is not None:
        pool = sorted(pool, key=lambda m: luck(arguments.seed, m.key))[:arguments.count]
    pool.sort(key=lambda m: (m.file, m.row, m.key))
    # Numbers of a file do not depend on other files, so that those need not be compiled again.
    names = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("lib/**/*.[ch]*"))
    number, file = 0, ""
    for mutant in pool:
        number = number + 1 if mutant.file == file else NUMBERS_OF_FILE * (names.index(mutant.file) + 1)
        file = mutant.file
        mutant.number = number
    return pool


class Run:
    """One run of a share: build, record, kill."""

    def __init__(self, arguments: argparse.Namespace, started: float) -> None:
        self.arguments, self.work = arguments, arguments.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.deadline = started + arguments.seconds if arguments.seconds else float("inf")
        self.state_file = self.work / "state.json"
        self.state = json.loads(self.state_file.read_text()) if self.state_file.exists() else {}
        self.results: dict[str, dict] = self.state.setdefault("results", {})
        self.schemata = Schemata(ROOT, self.work, self.deadline)
        self.saved = started
        self.unfinished = 0
        self.killers: dict[str, list[str]] = defaultdict(list)

    def save_sometimes(self) -> None:
        """An interrupted run loses at most half a minute of results."""
        if time.monotonic() - self.saved > 30:
            self.save()

    def save(self) -> None:
        self.saved = time.monotonic()
        temporary = self.state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.state))
        temporary.replace(self.state_file)

    def build(self, share: list[Mutant]) -> None:
        files: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in share:
            files[mutant.file].append(mutant)
        sources = "".join((ROOT / f).read_text() for f in sorted(files)) + "".join(m.key for m in share)
        self.digest = hashlib.sha1(sources.encode()).hexdigest()
        if self.state.get("digest") != self.digest:
            self.state["recordings"] = {}
        # A mutant that did not compile last time does not compile now.
        digests = {f: hashlib.sha1((ROOT / f).read_bytes()).hexdigest() for f in files}
        self.schemata.dropped = {m.number for m in share
                                 if self.results.get(m.key, {}).get("source") == digests[m.file]}
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.schemata.source), CCACHE_NOHASHDIR="1")
        try:
            self.schemata.make(dict(files), self.configure_command(), environment)
        finally:
            for mutant in share:
                if mutant.number in self.schemata.dropped:
                    self.results[mutant.key] = {"status": DOES_NOT_COMPILE, "source": digests[mutant.file]}
            self.save()
        self.state["digest"] = self.digest
        self.save()

    def configure_command(self) -> list[str]:
        return os.environ["BNGRAD_CONFIGURE"].split("\n")

    def limit(self, seconds: float) -> float:
        """The time for one test, which ends with that of the run."""
        return min(seconds, max(self.deadline - time.monotonic(), 0) + 1)

    def record(self, suite: Suite, stage: int) -> None:
        """Runs each test of a stage once, in a random order, unless its record exists."""
        recordings = self.state["recordings"]
        names = [n for n in suite.tests if suite.stage_of(n) == stage]
        digests = {n: suite.digest(n) for n in names}
        names = [n for n in names if recordings.get(n, {}).get("digest") != digests[n]]
        random.shuffle(names)
        count = self.state["count"]

        def take(name: str, recording: Recording) -> None:
            if recording.outcome == HUNG and time.monotonic() > self.deadline:
                return
            if recording.outcome not in (PASSED, SKIPPED):
                print(f"FAILS WITHOUT A MUTANT: {name}", flush=True)
            recordings[name] = asdict(recording)
            self.save_sometimes()

        runs.work_through(suite, self.arguments.jobs, names, lambda n: runs.record(suite, n, count, self.limit(900)), take,
                          self.deadline)
        self.save()

    def get_passed(self, mutant: Mutant) -> dict[str, str]:
        """The tests that have not noticed a mutant of this build, and their digests."""
        result = self.results.get(mutant.key, {})
        return dict(result["passed"]) if result.get("build") == self.digest else {}

    def kill(self, suite: Suite, stage: int, mutants: list[Mutant]) -> list[Mutant]:
        """Runs the tests of a stage on the mutants; gives those that are left."""
        recordings = self.state["recordings"]
        reaching: dict[int, list[str]] = defaultdict(list)
        for name, recording in recordings.items():
            if name in suite.tests and suite.stage_of(name) == stage and recording["outcome"] == PASSED:
                for number in recording["reached"]:
                    reaching[number].append(name)
        for mutant in mutants:
            passed = self.get_passed(mutant)
            reaching[mutant.number] = [n for n in reaching[mutant.number]
                                       if passed.get(n) != recordings[n]["digest"]]
        by_number = {m.number: m for m in mutants}
        left = {m.number for m in mutants}

        def order(mutant: Mutant) -> list[str]:
            """The tests that killed mutants of the same function last, then from the fastest on."""
            names = reaching[mutant.number]
            recent = [n for n in self.killers[mutant.function] if n in names]
            rest = sorted(set(names) - set(recent), key=lambda n: recordings[n]["seconds"])
            return recent[:3] + rest + recent[3:]

        def items():
            for mutant in mutants:
                if reaching[mutant.number]:
                    yield mutant.number, order(mutant)

        def do(item):
            number, names = item
            for name in names:
                limit = self.limit(max(10 * recordings[name]["seconds"], 20))
                outcome, _ = suite.run(name, {"BNGRAD_MUTANT": str(number)}, limit)
                if outcome == HUNG and time.monotonic() > self.deadline:
                    return None  # not run to the end
                if outcome in (FAILED, HUNG):
                    return name, outcome
            return None

        def take(item, killer) -> None:
            number, names = item
            mutant = by_number[number]
            passed = self.get_passed(mutant)
            self.results[mutant.key] = {"status": KILLED if killer else SURVIVED, "tests": len(names),
                                        "by": killer and killer[0], "how": killer and killer[1]}
            if not killer:
                passed |= {n: recordings[n]["digest"] for n in names}
                self.results[mutant.key] |= {"passed": passed, "build": self.digest}
            if killer:
                left.discard(number)
                killers = self.killers[mutant.function]
                if killer[0] in killers:
                    killers.remove(killer[0])
                killers.insert(0, killer[0])
            self.save_sometimes()

        runs.work_through(suite, self.arguments.jobs, items(), do, take, self.deadline)
        self.save()
        return [m for m in mutants if m.number in left]

    def go(self, share: list[Mutant]) -> list[Mutant]:
        """Runs the share; gives the mutants that were run to the end."""
        self.state["count"] = max((m.number for m in share), default=0)
        before = dict(self.results)
        try:
            self.build(share)
        except OutOfTime:
            print("out of time: the mutated sources are not built")
            self.unfinished = len(share)
            return []
        print(f"built after {time.monotonic() - STARTED:.0f} s: {len(share)} mutants, "
              f"{len(self.schemata.dropped)} do not compile", flush=True)
        share = [m for m in share if m.number not in self.schemata.dropped]
        if self.arguments.only:
            share = [m for m in share if re.search(self.arguments.only, m.key)]
        if self.arguments.again:
            share = [m for m in share if before.get(m.key, {}).get("status") not in (KILLED,)]
        suite = Suite(os.environ["BNGRAD_LIT_PATH"], self.schemata.build / "test", self.work)
        left = share
        for stage in range(self.arguments.first_stage - 1, self.arguments.stages):
            self.record(suite, stage)
            tested = len(left)
            left = self.kill(suite, stage, left)
            print(f"stage {stage + 1} after {time.monotonic() - STARTED:.0f} s: "
                  f"{tested - len(left)} of {tested} killed", flush=True)
        reached = {n for r in self.state["recordings"].values() for n in r["reached"]}
        if time.monotonic() > self.deadline:
            self.unfinished = len(left)
            left_numbers = {m.number for m in left}
            share = [m for m in share if m.number not in left_numbers]
        for mutant in share:
            if mutant.number not in reached and self.arguments.stages == len(runs.STAGES):
                self.results[mutant.key] = {"status": UNREACHED}
        for worker in self.work.glob("worker*"):
            shutil.rmtree(worker, ignore_errors=True)
        self.save()
        return share


def main() -> int:
    arguments = parse_arguments()
    pool = find_pool(arguments.files)
    share = take_share(list(pool), arguments)
    listed = report.read_listed(ROOT / "test" / "mutants-equivalent.txt")
    stale = report.find_stale(listed, pool, ROOT)
    for key in stale:
        print(f"LISTED, BUT NO MUTANT: {key}")
    if arguments.list:
        print("\n".join(m.key for m in share))
        return 1 if stale else 0
    run = Run(arguments, STARTED)
    if arguments.seconds:
        # Every test that reaches an equivalent mutant would be run.
        share = [m for m in share if listed.get(m.key, report.OPEN).startswith(report.OPEN)]
    done = run.go(share)
    done = [m for m in done if m.key in run.results]
    survivors = [m for m in done if run.results[m.key]["status"] in (SURVIVED, UNREACHED)]
    new = [m for m in survivors if m.key not in listed]
    wrong = [m.key for m in done if run.results[m.key]["status"] == KILLED and m.key in listed]
    for key in wrong:
        print(f"LISTED, BUT KILLED: {key}")
    for mutant in new:
        print(f"SURVIVED ({run.results[mutant.key]['status']}): {mutant.key}")
    if arguments.report:
        command = f"scripts/mutants.sh --generate --percent={arguments.percent:g} --report"
        report.write(ROOT / "docs" / "mutation.md", command, len(pool), share, run.results, listed)
    killed = sum(run.results[m.key]["status"] == KILLED for m in done)
    print(f"generated mutants: {len(done)}, killed {killed}, listed {len(survivors) - len(new)}, survived {len(new)}, "
          f"not run to the end {run.unfinished}")
    if arguments.least is not None:
        return 1 if 100 * killed < arguments.least * (killed + len(new)) else 0
    return 1 if new or wrong or stale and arguments.report else 0


if __name__ == "__main__":
    STARTED = time.monotonic()
    sys.exit(main())
