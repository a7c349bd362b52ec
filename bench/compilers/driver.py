"""The parent of the contenders' processes: whose turn it is, and the verdicts."""

import dataclasses
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import cases
import data
import judge
import limits
import machine
import measure
import native
import passes
from compilers import shared, table
from compilers.process import Failure, Process

HERE = pathlib.Path(__file__).resolve().parent
# Titles by name, in the order of the table.
TITLES = {"bngrad": "BNGrad", "bngrad-twin": "BNGrad again", "walk": "walked floor", "mlir": "MLIR's own passes",
          "iree": "IREE", "xla": "JAX/XLA", "xla-one-pass": "JAX/XLA, one pass", "inductor": "torch.compile",
          "torch": "PyTorch eager"}
OWN = ("bngrad", "bngrad-twin")
FLOOR = table.FLOOR
# Contenders that have one pass only: recipe.py schedules the linalg of the gradient, JAX has a second formula of the
# variance, and bench.py has the floors of the gradient.
PASS_OF = {"mlir": passes.BACKWARD, "xla-one-pass": passes.FORWARD, FLOOR: passes.FORWARD}
# Tensors to which the limit over the floor applies.
LARGE_BYTES = 15e6
# Seconds that a process has for an answer.
LIMITS = {"start": 120, "prepare": 240, "check": 60, "measure": 60}
# Processes that fail before the contender is given up.
MOST_FAILURES = 3
# Bounds of the errors, see Reference.error in data.py.
OWN_FACTOR, FACTOR = 5, 100
# A turn is disturbed if the idle contenders take more than this share of a core, or other processes
# this share of all cores. The system counts idle time in ticks: a tenth of the shortest turns.
MOST_IDLE, MOST_FOREIGN = 0.02, 0.2
ROUNDS, QUICK_ROUNDS, COMPILE_ROUNDS = 15, 3, 3
# Rounds over the requested ones, to repeat disturbed turns and to decide limits.
PATIENCE, MOST_ROUNDS = 2, 4


@dataclasses.dataclass
class Sample:
    """One turn, with the names of native.Sample."""

    cold: float
    warm: float
    bandwidth_before: float
    bandwidth_after: float
    faults: float
    # The share of the cores' time that other processes took.
    foreign: float
    # CPU time of the other contenders over the time of the turn.
    idle: float = 0.0


def environment_of(name, threads):
    """The variables of a contender's process."""
    environment = dict(os.environ)
    for variable in ("LD_PRELOAD", "KMP_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"):
        environment.pop(variable, None)
    environment |= {
        "PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1",
        # Memory is on huge pages, and freed memory stays with the process: outputs that a library
        # allocates cause no page faults.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
        "MALLOC_TOP_PAD_": str(1 << 28),
        "OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "false",
        # Threads sleep a millisecond after a call. GNU's runtime does so by itself.
        "KMP_BLOCKTIME": "1",
        "NPROC": str(threads), "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    if name in OWN + ("mlir",):
        environment["KMP_AFFINITY"] = "granularity=core,compact"
        environment["LD_PRELOAD"] = "/usr/lib/llvm-22/lib/libomp.so.5"
    elif name in ("inductor", "torch"):
        environment |= {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    return environment


class Launcher:
    """Starts the processes of contenders."""

    def __init__(self, arguments, scratch, cores):
        self.scratch, self.cores = pathlib.Path(scratch), cores
        self.log = arguments.work / "compilers.log"
        self.log.unlink(missing_ok=True)
        native.Turn(arguments.work).build()
        self.options = {"tools": str(pathlib.Path(arguments.tools).resolve()), "work": str(arguments.work),
                        "scratch": str(scratch), "cores": cores, "cache_bytes": machine.last_level_cache()}

    def __call__(self, name):
        environment = environment_of(name, len(self.cores))
        environment["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=self.scratch)
        # -P: a module here must not hide one that a library imports.
        return Process([sys.executable, "-B", "-P", "-m", "compilers.worker", name, json.dumps(self.options)],
                       environment, self.log)


class Slot:
    """One contender over all cases. A process that fails is replaced before the next case."""

    def __init__(self, name, launch):
        self.name, self.launch = name, launch
        self.process, self.absent, self.version = None, None, ""
        self.failures = 0

    def start(self):
        """Starts a process if there is none, without waiting for it."""
        if self.absent or self.process:
            return
        self.process = self.launch(self.name)
        self.send({"do": "start"})

    def send(self, request):
        try:
            self.process.send(request)
        except Failure:
            pass  # The answer that is missing says so.

    def finish_start(self):
        """Waits until the process has started; a reason in `absent` if it cannot."""
        try:
            answer = self.process.receive(LIMITS["start"])
        except Failure as failure:
            answer = {"absent": f"does not start: {failure}"}
        self.absent = answer.get("absent")
        self.version = answer.get("version", "")
        if self.absent:
            self.close()

    def fail(self, contender, failure):
        """Notes a failure in this case. A process that answered so lives on, others are replaced."""
        contender.error = str(failure)
        if self.process.is_alive:
            return
        self.failures += 1
        self.close()
        if self.failures >= MOST_FAILURES:
            self.absent = f"{self.failures} processes failed, the last: {failure}"

    def close(self):
        if self.process:
            self.process.close()
            self.process = None


def take_turn(slot, slots):
    """Measures once while all others wait."""
    others = [other.process for other in slots if other is not slot and other.process]
    start, before = time.monotonic(), sum(process.busy() for process in others)
    answer = slot.process.ask({"do": "measure"}, LIMITS["measure"])
    busy = sum(process.busy() for process in others) - before
    return Sample(**answer, idle=busy / (time.monotonic() - start))


def is_disturbed(sample):
    return measure.has_drifted(sample) or sample.foreign > MOST_FOREIGN or sample.idle > MOST_IDLE


def run_rounds(slots, contenders, rounds, is_decided):
    """Fills the contenders' samples; each follows every other one equally often. A contender that
    fails is left out from then on."""
    requested = rounds
    pairs = [(slot, contender) for slot, contender in zip(slots, contenders) if slot.process and not contender.error]
    number = 0
    while pairs and number < rounds * PATIENCE:
        turn = number % len(pairs)
        order = pairs[turn:] + pairs[:turn]
        if number % 2:
            order.reverse()
        for slot, contender in order:
            try:
                sample = take_turn(slot, slots)
            except Failure as failure:
                slot.fail(contender, failure)
                continue
            kept = contender.disturbed if is_disturbed(sample) else contender.samples
            kept[number] = sample
        pairs = [(slot, contender) for slot, contender in pairs if not contender.error]
        number += 1
        if all(len(contender.samples) >= rounds for _, contender in pairs):
            if is_decided() or rounds >= MOST_ROUNDS * requested:
                break
            rounds += requested
    for contender in contenders:
        measure.use_disturbed(contender)
        if contender.error:
            contender.samples, contender.disturbed = {}, {}


def prepare(slots, case, folder):
    """The contenders of a case, compiled by all processes at once."""
    contenders = [measure.Contender(slot.name) for slot in slots]
    waiting = [slot for slot in slots if not slot.absent and not slot.process]
    for slot in waiting:
        slot.start()
    for slot in waiting:
        slot.finish_start()
    for slot in slots:
        if slot.process:
            slot.send({"do": "prepare", "case": dataclasses.asdict(case), "folder": str(folder)})
    for slot, contender in zip(slots, contenders):
        contender.absent = slot.absent
        if slot.process:
            try:
                contender.schedule = slot.process.receive(LIMITS["prepare"])["outputs"]
            except Failure as failure:
                slot.fail(contender, failure)
    return contenders


def check(slots, contenders, store, reference):
    """Compares the results of each with the reference; one that is wrong is not measured."""
    for slot, contender in zip(slots, contenders):
        if not slot.process or contender.error:
            continue
        store.clear_results(reference.case)
        try:
            contender.calls = slot.process.ask({"do": "check"}, LIMITS["check"])["calls"]
        except Failure as failure:
            slot.fail(contender, failure)
            continue
        if slot.name == FLOOR:
            continue
        error = reference.error(store, OWN_FACTOR if slot.name in OWN else FACTOR)
        if error > 1:
            contender.error = f"wrong result: error {error:.3g} times the bound"


def find_limits(slots, case):
    """BNGrad must be no slower than any other compiler, and not much slower than the floor; its twins must be equal."""
    peers = [judge.Limit(slot.name, "bngrad", slot.name, 1 + judge.TIE) for slot in slots
             if slot.name not in (*OWN, FLOOR)]
    if case.tensor_bytes >= LARGE_BYTES:
        peers.append(judge.Limit(FLOOR, "bngrad", FLOOR, limits.FORWARD_FLOOR[case.type, case.layout]))
    twins = [judge.Limit("twin", *pair, 1 + judge.TIE) for pair in (OWN, OWN[::-1])]
    return peers + twins


def judge_limits(found, contenders):
    """Verdicts on the limits of which both contenders were measured."""
    by_name = {contender.name: contender for contender in contenders}
    verdicts = []
    for limit in found:
        if limit.first in by_name and limit.second in by_name:
            ratios = measure.find_ratios(by_name[limit.first], by_name[limit.second])
            if ratios:
                verdicts.append(judge.judge(limit, ratios))
    return verdicts


def run_case(slots, case, store, folder, rounds):
    """The entry of a case in the document, and the contenders with their samples."""
    contenders = prepare(slots, case, folder)
    check(slots, contenders, store, data.find_reference(store, case))
    limits = find_limits(slots, case)

    def is_decided():
        return all(verdict.state != judge.UNDECIDED for verdict in judge_limits(limits, contenders))

    run_rounds(slots, contenders, rounds, is_decided)
    results = {}
    for contender in contenders:
        result = results[contender.name] = measure.summarize(contender, case)
        result["outputs"] = result.pop("schedule", "")
        samples = contender.samples.values()
        if samples:
            result["faults"] = statistics.median(sample.faults for sample in samples)
            result["idle"] = max(sample.idle for sample in samples)
    entry = {"name": case.name, "sizes": "x".join(map(str, case.sizes)), "layout": case.layout, "type": case.type,
             "is_large": case.is_large, "results": results,
             "verdicts": [dataclasses.asdict(verdict) for verdict in judge_limits(limits, contenders)]}
    return entry, contenders


def group_of(entry):
    return f"{entry['type']} {'NCHW' if entry['layout'] == 'nchw' else 'NHWC, 2-D'}"


def judge_groups(entries, all_contenders, slots):
    """Verdicts on the geometric means of the groups, of warm and of cold calls, by group and peer."""
    groups = {}
    for entry, contenders in zip(entries, all_contenders):
        # A call of the smallest shape takes as long as the way into the library.
        if entry["sizes"] != "x".join(map(str, cases.TINY)):
            groups.setdefault(group_of(entry), []).append({contender.name: contender for contender in contenders})
    means = {}
    for group, members in groups.items():
        for slot in slots:
            for key in ("warm", "cold"):
                samples = [measure.find_ratios(member["bngrad"], member[slot.name], key) for member in members]
                samples = [found for found in samples if found]
                if slot.name not in (*OWN, FLOOR) and samples:
                    limit = judge.Limit(f"{group} {key} {slot.name}", "bngrad", slot.name, 1 + judge.TIE)
                    verdict = judge.judge_mean(limit, samples)
                    means.setdefault(group, {}).setdefault(key, {})[slot.name] = dataclasses.asdict(verdict)
    return means


def measure_compilation(launch, slots, folder, selected, rounds):
    """Seconds by case and name of imports and of the first compilation, each in a new process."""
    found = {}
    for case in selected:
        times = found[case.name] = {}
        for _ in range(rounds):
            for slot in slots:
                if slot.absent or slot.name in ("bngrad-twin", "torch"):
                    continue
                process = launch(slot.name)
                try:
                    imports = process.ask({"do": "start"}, LIMITS["start"])["import_s"]
                    request = {"do": "prepare", "case": dataclasses.asdict(case), "folder": str(folder)}
                    compiled = process.ask(request, LIMITS["prepare"])["compile_s"]
                    times.setdefault(slot.name, []).append((imports, compiled))
                except Failure as failure:
                    print(f"{case.name}, compile time of {slot.name}: {failure}", flush=True)
                finally:
                    process.close()
    return {name: {peer: [statistics.median(part) for part in zip(*samples)] for peer, samples in times.items()}
            for name, times in found.items()}


def progress(entry):
    own = entry["results"]["bngrad"].get("warm_us")
    parts = []
    for name, result in entry["results"].items():
        if "warm_us" not in result:
            parts.append(f"{name} {result.get('error') or 'absent'}")
        else:
            parts.append(f"{name} {result['warm_us'] / own:.2f}" if own else f"{name} {result['warm_us']:.1f} us")
    own_text = f"{own:.4g} us" if own else "not measured"
    print(f"{entry['name']} (over BNGrad's {own_text}): {', '.join(parts)}", flush=True)


def describe(slots):
    return [{"name": slot.name, "title": TITLES[slot.name], "version": slot.version, "absent": slot.absent}
            for slot in slots]


def find_failures(entries):
    """One line for each case of which BNGrad could not be measured."""
    return [f"{entry['name']}: {name}: {result.get('error') or result.get('absent') or 'not measured'}"
            for entry in entries for name, result in entry["results"].items()
            if name in OWN and "warm_us" not in result]


def measure_all(arguments, scratch, selected, launch):
    """The measured part of the document; `launch(name)` starts a process."""
    store = data.Store(shared.Folder(scratch), selected)
    shared.save(store, scratch)
    names = [name for name in TITLES if PASS_OF.get(name, arguments.norm_pass) is arguments.norm_pass]
    slots = [Slot(name, launch) for name in names if name in OWN or re.search(arguments.peers, name)]
    entries, all_contenders, bandwidths = [], [], []
    try:
        for case in selected:
            entry, contenders = run_case(slots, case, store, scratch, arguments.rounds)
            entries.append(entry)
            all_contenders.append(contenders)
            bandwidths += [1e-9 * (sample.bandwidth_before + sample.bandwidth_after) / 2
                           for contender in contenders for sample in contender.samples.values()]
            progress(entry)
    finally:
        for slot in slots:
            slot.close()
    compiled = [case for case in selected if case.sizes == cases.COMPILED and case.type == "f32"]
    compilation = measure_compilation(launch, slots, scratch, compiled, 1 if arguments.quick else COMPILE_ROUNDS)
    return {
        "peers": describe(slots),
        "bandwidth_gbps": {"median": statistics.median(bandwidths or [0]), "min": min(bandwidths, default=0),
                           "max": max(bandwidths, default=0)},
        "cases": entries, "means": judge_groups(entries, all_contenders, slots), "compilation": compilation,
        "failures": find_failures(entries),
    }


def run(arguments, root):
    """Measures, and writes the table; whether the limits are kept."""
    arguments.rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    selected = cases.select_for_compilers(arguments.shapes or (cases.QUICK_COMPILERS if arguments.quick else ""),
                                          arguments.norm_pass)
    if not selected:
        raise RuntimeError("expected --shapes to match a case, got none")
    cores = machine.choose_cpus(int(os.environ["OMP_NUM_THREADS"]))
    document = {"machine": machine.describe(root, len(cores)) | arguments.described_isa,
                "options": {"quick": arguments.quick, "rounds": arguments.rounds, "pass": arguments.norm_pass.name}}
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="bngrad-", dir=memory if memory.is_dir() else arguments.work) as scratch:
        document |= measure_all(arguments, scratch, selected, Launcher(arguments, scratch, cores))
    table.write(document, arguments.output)
    print(f"bngrad: written to {arguments.output}.md, .json and .svg")
    lines, is_kept = table.summarize_limits(document)
    print("\n".join(lines))
    return is_kept
