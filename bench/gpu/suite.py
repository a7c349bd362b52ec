"""The GPU suite: runs the functions that bundle.py packed with it.

    python3 suite.py --call=times --output=FOLDER
    python3 suite.py --call=checks --output=FOLDER
    python3 suite.py --call=frameworks --output=FOLDER
    python3 suite.py --call=... --only=PART,... --shapes=REGEX --minutes=N --retry --output=FOLDER
    python3 suite.py --call=... --dry-run --library=libBNGradCudaEmulator.so --output=FOLDER

Each call is of use without the other, and ends within its minutes. Needs numpy; an NVIDIA GPU for more than a dry run,
and PyTorch to compare with. Each part runs in processes of its own, which append each result to FOLDER/journal.jsonl. A
task that faults or hangs costs its own result, and the others go on. A second run
with the same folder continues. Exits with 1 if a result is wrong or a task failed."""

import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import journal
import plan
import process
import results
import summary
import tools

PARTS = list(dict.fromkeys(part.name for parts in plan.CALLS.values() for part in parts)) + ["load"]
# In the place of a part, of functions that bundle.py could not compile.
NOT_COMPILED = "compile-time"
# A process may take as long to begin its first task, also one that imports PyTorch, which is slow the first time.
START_SECONDS, TORCH_SECONDS = 60, 120
# So may the first call of another implementation (plan.WARMED), which for torch.compile starts processes that compile.
WARM_SECONDS = 150
PROBE_SECONDS = 60
# A device that works answers as soon, after the first time.
ANSWER_SECONDS = 20
# For the report at the end.
RESERVE_SECONDS = 5
SAVE_SECONDS = 15


class Worker:
    """A process that runs tasks of a part, watched through the journal."""

    def __init__(self, job, log_path):
        with open(log_path, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-B", str(HERE / "worker.py")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=process.end_with_me(),
            )
        try:
            self.process.stdin.write(json.dumps(job).encode())
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # It has died, as `poll` tells.

    def kill(self):
        """Kills the process and its children. False if it survives, in the kernel."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            return False
        return True


class Suite:
    def __init__(self, options):
        self.options = options
        self.start = time.time()
        self.end = self.start + 60 * options.minutes - RESERVE_SECONDS
        self.catalogue = plan.Catalogue(shapes=options.shapes)
        self.seed = options.seed if options.seed is not None else random.randrange(10**6)
        self.parts = []
        self.path = options.output / "journal.jsonl"
        self.log = None
        self.saved = 0.0
        # Until nvidia-smi fails to say it once.
        self.has_clock = True
        self.machine = {}
        # Needs of parts that this machine lacks, with the reason.
        self.missing = {}
        self.cubins = False
        # Whether cubins were used when the parts got their tasks.
        self.plans_cubins = False
        # Results by task, of this run and of those that it continues.
        self.finished = {}
        self.given_up = set()
        # Other implementations that faulted or hung, with the reason.
        self.excluded = {}

    # The machine.

    def probe(self, task, seconds=PROBE_SECONDS):
        """What a process of its own finds out about the driver or the device."""
        path = self.options.output / "probe.jsonl"
        part = plan.Part("probe", seconds, 1, tasks=[task])
        path.unlink(missing_ok=True)
        _, why = self.run_worker(part, [task], journal.Journal(path), self.end)
        found = [record["result"] for record in journal.load(path) if "result" in record]
        self.finished.pop(part.id(task), None)
        return found[-1] if found else {"error": why}

    def find_device(self):
        commit, chip = self.catalogue.manifest["commit"], self.catalogue.manifest["chip"]
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.machine = {"commit": commit, "chip": chip, "date": now}
        if self.options.dry_run:
            self.machine["gpu"] = results.DRY_RUN
            return
        driver, device, smi = (self.probe(task) for task in ("driver", "device", "smi"))
        version = driver.pop("version", [0, 0])
        self.machine.update({"gpu": "unknown GPU", **driver})
        self.machine.pop("error", None)
        software = f"driver of CUDA {version[0]}.{version[1]}"
        if "error" in driver:
            software = f"no driver: {driver['error']}"
        if "smi" in smi:
            software += f"; {smi['smi']}"
        # A machine that was too slow to tell is not known to lack it.
        if "error" in device and time.time() < self.end:
            self.missing["device"] = device["error"]
        self.machine["software"] = software
        # Drivers run binaries of their own major version of CUDA, or an older one.
        toolkit = self.catalogue.manifest.get("toolkit")
        self.cubins = bool(toolkit) and tuple(version) >= (toolkit[0], 0)
        self.machine["kernels"] = "cubins" if self.cubins else "PTX"

    def find_needs(self, part):
        """The reason why the part cannot be run here, and its kind; none of both: it can."""
        for need in part.needs:
            if need in tools.NAMES and not tools.find(need):
                self.missing.setdefault(need, f"expected {need}, found none")
            if need in self.missing:
                return self.missing[need], "failed" if need == "device" else "absent"
        return None, None

    def open_journal(self):
        """Continues the journal of the same machine, else begins another. Its results count for functions that have not
        changed since."""
        keys = ("gpu", "chip")
        for record in journal.load(self.path):
            if "machine" in record:
                old = record["machine"]
                if any(old.get(key) != self.machine.get(key) for key in keys):
                    self.path.rename(self.path.with_suffix(f".{int(time.time())}.jsonl"))
                    break
        last = journal.find_results(journal.load(self.path))
        keys = {task: self.key(task) for task in last}
        stale = [task for task, record in last.items() if keys[task] not in (None, record.get("key"))]
        for task, record in last.items():
            again = self.options.retry and not plan.is_complete(task.split("/")[0], record["result"])
            if task not in stale and not again:
                self.finished[task] = record["result"]
        self.log = journal.Journal(self.path)
        if stale:
            self.log.append({"stale": stale})
        names = self.catalogue.measured()
        self.log.append(
            {
                "machine": self.machine,
                "seed": self.seed,
                "plan": {part.name: len(part.tasks) for part in self.parts},
                "cases": {name: self.catalogue.describe(name) for name in names},
            }
        )

    # Parts.

    def key(self, task):
        """What the result of a task, such as smoke/NAME, holds for."""
        return self.catalogue.key(*task.split("/", 1))

    def uses_torch(self, part):
        return part.name in plan.WITH_TORCH and not self.options.dry_run and "torch" not in self.missing

    def job(self, part, tasks, limit, end):
        return {
            "part": part.name,
            "tasks": tasks,
            "keys": {task: self.key(part.id(task)) for task in tasks},
            "limit": limit,
            "end": end,
            "needs": part.needs,
            "folder": str(HERE),
            "shapes": self.options.shapes,
            "journal": "",
            "library": str(self.options.library),
            "dry_run": self.options.dry_run,
            "cubins": self.cubins,
            "plans_cubins": self.plans_cubins,
            "torch": self.uses_torch(part),
            "excluded": self.excluded,
            "queue": self.options.queue,
        }

    def run_worker(self, part, tasks, log, end):
        """Runs tasks in one process. Returns ("done", "failed", "stuck" or "late", why)."""
        job = self.job(part, tasks, min(part.limit, self.options.limit), end)
        job["journal"] = str(log.path)
        reader = journal.Reader(log.path)
        reader.read()
        child = Worker(job, self.options.output / "worker.log")
        state = {"task": None, "since": time.time(), "at": "", "fault": None}
        while True:
            code = child.process.poll()
            self.follow(reader, state)
            if code is not None:
                break
            now = time.time()
            limit = TORCH_SECONDS if job["torch"] else START_SECONDS
            if state["task"] or state["at"]:
                limit = job["limit"] if state["task"] else WARM_SECONDS
            is_late = now > self.end
            if is_late or now > state["since"] + limit:
                outcome = "failed" if child.kill() else "stuck"
                self.follow(reader, state)
                why = f"not finished after {now - state['since']:.0f} s"
                if not is_late:
                    self.fail(log, state, why)
                return ("late" if is_late else outcome), why
            self.save_sometimes(part)
            time.sleep(0.02)
        # A child of the process may still run.
        child.kill()
        if code == 0:
            return "done", ""
        why = state["fault"] or self.describe_exit(code)
        self.fail(log, state, why)
        return "failed", why

    def follow(self, reader, state):
        """Reads new lines of the journal: the task in progress, and results."""
        for record in reader.read():
            if "cubins" in record:
                self.cubins = False
            if "missing" in record:
                self.missing[record["missing"]] = record["why"]
            if "begin" in record:
                state.update(task=record["task"], since=time.time(), at="")
            elif "result" in record:
                self.finished[record["task"]] = record["result"]
                state.update(task=None, since=time.time(), at="")
            elif "at" in record:
                # Before the first task, it has the time for a first call.
                state.update(at=record["at"], since=state["since"] if state["task"] else time.time())
            elif "fault" in record:
                state["fault"] = record["fault"]

    def fail(self, log, state, why):
        """Gives the task in progress an error as its result. The fault of another implementation excludes that, and the
        task is run again without it."""
        task, at = state["task"], state["at"]
        name = task.split("/", 1)[1] if task else "its first call"
        if at and at not in self.excluded:
            self.excluded[at] = f"{name}: {why}"
            log.append({"note": f"{at} is not measured after {name}: {why}"})
            return
        if not task:
            return
        log.finish(task, {"error": why}, time.time() - state["since"], self.key(task))
        self.finished[task] = {"error": why}

    def describe_exit(self, code):
        if code == process.RESTART:
            return "the device does not answer after an error"
        if code < 0:
            return f"the process died: {signal.Signals(-code).name}"
        # Python's error, such as that of a module that cannot be imported.
        lines = (self.options.output / "worker.log").read_text(errors="replace").splitlines()
        return f"the process ended with status {code}: {(lines or ['no output'])[-1][:200]}"

    def left(self, part):
        return [task for task in part.tasks if part.id(task) not in self.finished]

    def give_up(self, part, why, kind="failed"):
        self.given_up.add(part.name)
        self.log.append({"part": part.name, kind: why})

    def run_part(self, part, until):
        """Runs the tasks of a part that have no result, before the time `until`."""
        if part.name == "counters":
            misses = results.find_misses(self.document())
            part.tasks = plan.choose_counted(self.catalogue, self.options.call, misses)
        failures = plan.Failures(self.catalogue.traits)
        while (tasks := self.left(part)) and time.time() < until and part.name not in self.given_up:
            why, kind = self.find_needs(part)
            if why:
                self.give_up(part, why, kind)
                break
            uses_torch, excluded = self.uses_torch(part), len(self.excluded)
            tasks = failures.order(tasks)
            outcome, why = self.run_worker(part, tasks, self.log, until)
            ended = [task for task in tasks if part.id(task) in self.finished]
            self.find_refusal(part, ended)
            if outcome == "stuck":
                self.give_up(part, why)
            elif any(need in self.missing for need in part.needs) or (uses_torch and "torch" in self.missing):
                continue  # The part ends, or goes on without PyTorch.
            elif outcome in ("done", "late"):
                break
            elif ended:
                self.judge(part, failures, ended, why)
            elif len(self.excluded) > excluded:
                continue
            elif uses_torch:
                self.missing["torch"] = f"no PyTorch: {why}"
            else:
                self.give_up(part, why)
        self.save()

    def find_refusal(self, part, ended):
        """A tool that may not be used for one task may not be used for others."""
        for task in ended:
            if why := self.finished[part.id(task)].get("refused"):
                self.missing[part.needs[-1]] = why

    def judge(self, part, failures, ended, why):
        """Gives a part up after a process that failed in the last of the tasks `ended`, if the device does not answer or
        nothing else is to be expected of what is left."""
        *before, failed = ended
        failures.add([task for task in before if "error" not in self.finished[part.id(task)]], failed)
        if failures.in_a_row == plan.MOST_FAILURES and "device" in part.needs:
            found = self.probe("answer", ANSWER_SECONDS)
            if "error" in found and time.time() < self.end:
                self.missing["device"] = f"the device does not answer: {found['error']}; before: {why}"
                return
        if failures.is_hopeless(self.left(part)):
            self.give_up(part, f"{failures.in_a_row} processes in a row failed: {why}")

    def run(self):
        options = self.options
        print(f"call {options.call}: {options.minutes:g} minutes at most, results in {options.output};"
              " looking for the device", flush=True)
        options.output.mkdir(parents=True, exist_ok=True)
        self.find_device()
        print(results.describe_machine(self.machine), flush=True)
        self.plans_cubins = self.cubins
        self.parts = plan.make_parts(self.catalogue, options.call, self.seed, self.cubins, options.dry_run)
        self.parts = [part for part in self.parts if part.name in options.only]
        self.open_journal()
        for name, why in self.catalogue.errors.items():
            task = f"{NOT_COMPILED}/{name}"
            self.log.finish(task, {"error": f"not compiled: {why}"}, 0, self.key(task))
        print(f"seed: {self.seed}; kernels: {self.machine.get('kernels', 'PTX')}", flush=True)
        try:
            self.run_parts()
        except (KeyboardInterrupt, SystemExit):
            # Its processes end with this one.
            self.save()
            raise
        return self.finish()

    def run_parts(self):
        begin = time.time()

        def at(fraction):
            return begin + fraction * (self.end - begin)

        for part in (part for part in self.parts if not part.is_last):
            self.run_part(part, at(part.until))
            self.print_part(part)
        # What had no time, before what matters less; then the same in the time that this leaves.
        last = [part for part in self.parts if part.is_last]
        for part in self.parts if last else []:
            if not part.is_last:
                self.run_part(part, at(plan.REST_UNTIL))
        for part in last:
            self.run_part(part, at(part.until))
            self.print_part(part)
        for part in self.parts:
            self.run_part(part, self.end)

    def print_part(self, part):
        count = len(part.tasks) - len(self.left(part))
        print(
            f"{part.name}: {count} of {len(part.tasks)} tasks,"
            f" {time.time() - self.start:.0f} s after the start",
            flush=True,
        )

    # Reports.

    def document(self):
        return results.build(journal.load(self.path))

    def save(self):
        self.saved = time.time()
        document = self.document()
        results.write(document, self.options.output / results.file_name(document))

    def save_sometimes(self, part):
        if not self.log or time.time() < self.saved + SAVE_SECONDS:
            return
        self.save()
        if part.name == "benchmark" and self.has_clock:
            clock = tools.query_clock()
            self.has_clock = clock is not None
            if clock:
                self.log.append({"clock_mhz": clock})

    def finish(self):
        self.save()
        document = self.document()
        base = self.options.output / results.file_name(document)
        # The folder may have results of the other call, too.
        parts = {part.name for part in plan.CALLS[self.options.call] + plan.DRY_CALLS[self.options.call]}
        parts.add(NOT_COMPILED)
        print("\n".join(summary.make(document, parts, base)), flush=True)
        return 1 if results.wrong_items(document, parts) or results.failed_parts(document, parts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("OUT", "results")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(default))
    parser.add_argument("--call", choices=plan.CALLS, default="times", help="which third of the suite (times)")
    parser.add_argument("--minutes", type=float, help="time for all parts (5.5, or 3.5 for frameworks; 60 for a dry run)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--shapes", default="", help="only items whose name matches")
    parser.add_argument("--seed", type=int, help="of the order of correctness tests")
    parser.add_argument("--retry", action="store_true", help="repeat tasks that failed, or lack results of other implementations")
    parser.add_argument("--limit", type=float, default=60, help="most seconds of a task (60)")
    parser.add_argument("--queue", type=int, default=64, help="most calls that are queued at once (64)")
    parser.add_argument("--library", default=HERE / "libBNGradCudaRuntime.so")
    parser.add_argument("--dry-run", action="store_true", help="run on the emulator, without GPU and PyTorch")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = [part for part in options.only if part not in PARTS]
    if unknown:
        parser.error(f"expected --only to be some of {','.join(PARTS)}, got {unknown[0]}")
    if options.minutes is None:
        options.minutes = 60 if options.dry_run else plan.MINUTES[options.call]
    for name in ("minutes", "limit", "queue"):
        if not getattr(options, name) > 0:
            parser.error(f"expected --{name} to be positive, got {getattr(options, name):g}")
    options.output = options.output.resolve()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return Suite(options).run()


if __name__ == "__main__":
    sys.exit(main())
