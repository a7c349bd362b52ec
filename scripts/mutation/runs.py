"""Runs lit's tests one by one: the mutants that each reaches, and whether it notices one.

lit is used as a library, as starting it costs more than most tests. A test runs
in a process group of its own, which is ended after a time.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable

PASSED, FAILED, SKIPPED, HUNG = "passed", "failed", "skipped", "hung"

# Fast tests first: they kill most mutants.
STAGES = [
    r"^BNGrad :: (Transforms|Dialect|Pipelines)/",
    r"^BNGrad :: (Integration/CPU|Compile|Runner|Docs)/(?!numpy|numerics)|Unit",
    r"^BNGrad :: (Integration/CUDA|Integration/CPU)/(?!broken|ptxas)",
]
MEMORY = 16_000_000 << 10


@dataclass
class Recording:
    """A run of one test without a mutant."""

    digest: str
    outcome: str
    seconds: float
    reached: list[int]


class Suite:
    """The tests of a build folder."""

    def __init__(self, lit_path: str, folder: Path, work: Path) -> None:
        sys.path.insert(1, lit_path)
        import lit.discovery
        import lit.LitConfig

        self.config = lit.LitConfig.LitConfig(
            progname="lit", path=[], diagnostic_level="warning", useValgrind=False, valgrindLeakCheck=False,
            valgrindArgs=[], noExecute=False, debug=False, isWindows=False, order="smart", params={})
        found = lit.discovery.find_tests_for_inputs(self.config, [str(folder)])
        self.tests: dict[str, Any] = {test.getFullName(): test for test in found}
        self.work = work

    def stage_of(self, name: str) -> int | None:
        return next((i for i, pattern in enumerate(STAGES) if re.search(pattern, name)), None)

    def digest(self, name: str) -> str:
        """The digest of the test's file and of the files beside it that it may read."""
        path = Path(self.tests[name].getSourcePath())
        data = path.read_bytes() if path.is_file() else b""
        for helper in sorted(path.parent.glob("*.py")) + sorted(path.parent.glob("Inputs/*")):
            if helper.is_file():
                data += helper.read_bytes()
        return hashlib.sha1(data).hexdigest()

    def run(self, name: str, environment: dict[str, str], limit: float) -> tuple[str, float]:
        """Runs one test; gives the outcome and the seconds it took."""
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(self._child(name, environment))
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            seconds = time.monotonic() - started
            if done:
                break
            if seconds > limit:
                kill_group(child)
                os.waitpid(child, 0)
                return HUNG, seconds
            time.sleep(0.005 if seconds < 1 else 0.05)
        # Processes that the test left running end with it.
        kill_group(child)
        code = os.waitstatus_to_exitcode(status)
        return {0: PASSED, 2: SKIPPED}.get(code, FAILED), seconds

    def _child(self, name: str, environment: dict[str, str]) -> int:
        import lit.Test
        import lit.worker

        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            test = self.tests[name]
            test.config.environment.update(environment)
            result = lit.worker._execute(test, self.config)
            if os.environ.get("BNGRAD_MUTANT_LOG"):
                Path(os.environ["BNGRAD_MUTANT_LOG"]).write_text(result.output or "")
            if result.code in (lit.Test.UNSUPPORTED, lit.Test.SKIPPED, lit.Test.EXCLUDED):
                return 2
            return 1 if result.code.isFailure else 0
        except BaseException:
            return 3

    def use_folder_of(self, worker: int) -> None:
        """Gives each worker its own folder of temporary files."""
        for test in self.tests.values():
            if "/Unit" not in test.suite.exec_root and "unittests" not in test.suite.exec_root:
                test.suite.exec_root = str(self.work / f"worker{worker}")


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def record(suite: Suite, name: str, count: int, limit: float = 900) -> Recording:
    """Runs a test without a mutant and notes the mutants that it reaches."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(count + 1)
        outcome, seconds = suite.run(name, {"BNGRAD_MUTANT": "0", "BNGRAD_MUTANTS_REACHED": file.name}, limit)
        data = Path(file.name).read_bytes()
    reached = [i for i, byte in enumerate(data) if byte]
    return Recording(suite.digest(name), outcome, seconds, reached)


def work_through(suite: Suite, jobs: int, items: Iterable[Any], do: Callable[[Any], Any],
                 take: Callable[[Any, Any], None], deadline: float) -> None:
    """Does each item in one of `jobs` processes; takes the results in this process, in the order of their arrival."""
    context = multiprocessing.get_context("fork")
    todo, done = context.SimpleQueue(), context.SimpleQueue()

    def worker(number: int) -> None:
        suite.use_folder_of(number)
        while (item := todo.get()) is not None:
            done.put((item, do(item)))

    processes = [context.Process(target=worker, args=(i,)) for i in range(jobs)]
    for process in processes:
        process.start()
    waiting, running = iter(items), 0
    for _ in range(jobs):
        running += give(todo, waiting, deadline)
    while running:
        item, result = done.get()
        running += give(todo, waiting, deadline) - 1
        take(item, result)
    for _ in processes:
        todo.put(None)
    for process in processes:
        process.join()


def give(todo: Any, waiting: Any, deadline: float) -> int:
    """Hands out the next item if there is one and time for it."""
    if time.monotonic() > deadline:
        return 0
    item = next(waiting, None)
    if item is None:
        return 0
    todo.put(item)
    return 1
