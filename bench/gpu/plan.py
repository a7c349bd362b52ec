"""The calls and parts of the GPU suite, in the order of their value, and their tasks."""

import collections
import dataclasses
import hashlib
import itertools
import json
import pathlib
import random
import re

import framework_tasks
import items

HERE = pathlib.Path(__file__).resolve().parent
# Functions that one process of compute-sanitizer calls.
PIECE = 8
SANITIZERS = ("memcheck", "racecheck", "synccheck")
# The end of the smoke tests' names of functions that also are cubins.
AS_PTX = " as PTX"
# Cases whose DRAM bytes are counted among the times: those that miss the model most.
MOST_COUNTED = 4
# Processes in a row that end without a good result before a part is given up.
MOST_FAILURES = 5
# The fraction of the time of a call until which what is left of the other parts comes before the parts that are last.
REST_UNTIL = 0.85


@dataclasses.dataclass
class Part:
    """`limit` is for one task, in seconds. The part begins no task after the fraction `until` of the time of the call;
    other parts get the time that it leaves."""

    name: str
    limit: float
    until: float
    # Of device, torch and the tools of NVIDIA.
    needs: tuple = ("device",)
    # Whether it begins after what is left of the other parts.
    is_last: bool = False
    tasks: list = dataclasses.field(default_factory=list)

    def id(self, task):
        return f"{self.name}/{task}"


# The parts of each call, which is of use without the other.
CALLS = {
    "times": [
        Part("slots", 30, 0.1),
        Part("smoke", 20, 0.2),
        Part("benchmark", 40, 0.6),
        Part("alternatives", 40, 0.72),
        Part("counters", 60, 0.8, ("device", "ncu")),
        Part("compile", 60, 1, ("device", "torch"), is_last=True),
    ],
    "checks": [
        Part("correctness", 20, 0.35),
        Part("queued", 20, 0.55),
        Part("sanitizer", 60, 0.8, ("device", "compute-sanitizer")),
        Part("counters", 60, 1, ("device", "ncu"), is_last=True),
    ],
    "frameworks": [Part("frameworks", 150, 1, ("device", "torch", "bngrad"))],
}
# The most minutes of a call.
MINUTES = {"times": 5.5, "checks": 5.5, "frameworks": 3.5}
DRY_CALLS = {
    "times": [Part("smoke", 60, 1, ()), Part("load", 60, 1, ())],
    "checks": [Part("correctness", 60, 1, ())],
    "frameworks": [],
}
# Parts that run in the process with PyTorch, if there is one.
WITH_TORCH = ("benchmark", "alternatives", "compile", "frameworks")
# The other implementations that a part measures: those that are ready at once, and those that compile for each shape.
PEERS = {"benchmark": ("torch", "cudnn", "cudnn_graph", "apex"), "compile": ("compile", "triton", "quack", "flag_gems")}
# Those that are called once on a small tensor before the first task of a part, as their first call takes long.
WARMED = {"benchmark": ("cudnn", "cudnn_graph"), "compile": ("compile", "triton")}


def is_complete(part, result):
    """Whether nothing is to be expected of a task if it is repeated: it has all results, or what it lacks is not offered
    here."""
    found = result.get("results", {})
    peers = [found.get(peer, {"absent": "no entry"}) for peer in PEERS.get(part, ())]
    return not any("error" in each or ("absent" in each and not each.get("not_offered")) for each in [result, *peers])


def make_item(entry):
    fields = ("layout", "type", "variant", "schedule", "format")
    return items.Item(tuple(entry["sizes"]), *(entry[field] for field in fields))


@dataclasses.dataclass(frozen=True)
class Function:
    """A function in an object."""

    path: pathlib.Path
    name: str


class Catalogue:
    """The items of a bundle with their functions."""

    def __init__(self, folder=HERE, shapes=""):
        self.folder, self.shapes = folder, shapes
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.items, self.entries, self.errors, self.hashes = {}, {}, {}, {}
        for entry in self.manifest["items"]:
            item = make_item(entry)
            self.hashes[item.name] = entry.get("hash", "")
            if not re.search(shapes, item.name):
                continue
            if "error" in entry:
                self.errors[item.name] = entry["error"]
            if "object" in entry or "cubin" in entry:
                self.items[item.name] = item
                self.entries[item.name] = entry

    def function(self, name, cubins):
        """The function of an item: as a cubin, if there is one and `cubins`, or else as PTX, if there is that."""
        entry = self.entries[name]
        path = entry.get("cubin", entry.get("object")) if cubins else entry.get("object")
        return Function(self.folder / path, entry["function"]) if path else None

    def describe(self, name):
        """The facts of a case for the table."""
        item, entry = self.items[name], self.entries[name]
        facts = {"layout": item.layout, "type": item.type, "tensor_bytes": item.case.tensor_bytes, "inputs": item.inputs}
        return {**facts, "schedule": entry.get("chosen", ""), "model_us": entry.get("model_us", {})}

    def traits(self, task):
        """What a task has in common with others that fail for the same reason: the kernel, layout, types, variant and
        form of its function, or its tool."""
        name = task.removesuffix(AS_PTX)
        if name not in self.items:
            return task.split()[:2]
        item, is_binary = self.items[name], self.has_cubin(name) and name == task
        return [items.kernel(self.entries[name].get("chosen", "")), item.layout, item.type, item.variant,
                "a cubin" if is_binary else item.format]

    def key(self, part, task):
        """A result of a task holds for all bundles in which it has this key: for the same functions and runtime. None for
        pieces of another choice of shapes, of which nothing is known."""
        names = [task.removesuffix(AS_PTX)]
        if part == "sanitizer":
            if self.shapes != self.shapes_of(task):
                return None
            names = self.piece(task)
        elif part == "alternatives":
            names.append(self.original(task))
        text = " ".join([task, self.manifest.get("runtime", ""), *names, *(self.hashes.get(name, "") for name in names)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def has_cubin(self, name):
        return "cubin" in self.entries[name]

    def drop_binaries(self):
        """Forgets cubins, and the functions that are binaries alone."""
        for name, item in list(self.items.items()):
            self.entries[name].pop("cubin", None)
            if item.format != "isa" or "object" not in self.entries[name]:
                del self.items[name], self.entries[name]

    def small(self):
        return [name for name, item in self.items.items()
                if item.is_small and item.schedule not in items.ALTERNATIVES]

    def measured(self):
        return [name for name, entry in self.entries.items() if entry.get("measured")]

    def alternatives(self):
        """Items with other schedules of those that are measured."""
        others = (dataclasses.replace(self.items[name], schedule=schedule).name
                  for name in self.measured() for schedule in items.ALTERNATIVES)
        return [name for name in others if name in self.items]

    def original(self, name):
        """The item of which `name` has another schedule."""
        schedule = next(each for each in items.ALTERNATIVES if name.endswith(each))
        return name.removesuffix(f" {schedule}")

    def representatives(self, key):
        return [item.name for item in items.representatives([self.items[name] for name in self.small()], key)]

    def smoke(self):
        """The tasks of the smoke test: an item of each kernel, variant, layout, type and format, as a cubin, where
        there is one, and as PTX. Neighbours have little in common, so that the first ones reach everything."""
        names = self.representatives(items.kind_and_type)
        as_ptx = [name for name in names if self.has_cubin(name) and "object" in self.entries[name]]
        return spread(names + [name + AS_PTX for name in as_ptx], self.traits)

    def kinds(self):
        """An item of each kernel, variant and layout."""
        return self.representatives(items.kind)

    def queued(self):
        return spread(self.kinds(), self.traits)

    def pieces(self):
        """The items of `kinds`, in pieces for one process each."""
        names = self.kinds()
        # Items of one kernel are neighbours; each piece has several kernels.
        count = -(-len(names) // PIECE)
        return [names[first::count] for first in range(count)]


    def sanitizer_tasks(self):
        """`TOOL NUMBER` of each tool and piece, and of which shapes the pieces are, if not of all."""
        suffix = f" of {self.shapes}" if self.shapes else ""
        return [f"{tool} {number}{suffix}" for number in range(len(self.pieces())) for tool in SANITIZERS]

    @staticmethod
    def shapes_of(task):
        return task.split(" ", 3)[3] if " of " in task else ""

    def piece(self, task):
        """The items of a task of the sanitizer."""
        pieces, number = self.pieces(), int(task.split()[1])
        return pieces[number] if number < len(pieces) else []


def take_turns(tasks, shape):
    """`tasks` in an order that has one of each shape, then another one of each: not the first of all, so that the ones
    of a turn differ in the rest, too."""
    groups = {}
    for task in tasks:
        groups.setdefault(shape(task), []).append(task)
    turned = [group[number % len(group) :] + group[: number % len(group)] for number, group in enumerate(groups.values())]
    return [task for turn in itertools.zip_longest(*turned) for task in turn if task is not None]


def spread(tasks, traits):
    """`tasks` in an order in which each has as little as possible in common with those before it."""
    found, left, counts = [], list(tasks), collections.Counter()
    while left:
        task = min(left, key=lambda task: sum(counts[trait] for trait in traits(task)))
        left.remove(task)
        found.append(task)
        counts.update(traits(task))
    return found


class Failures:
    """Those of the processes of a part. Tasks that have much in common with the ones that failed come last, until
    others show what works."""

    def __init__(self, traits):
        self.traits = traits
        self.in_a_row = 0
        # By trait, those since the last good result with it.
        self.counts = collections.Counter()

    def add(self, good, failed):
        """A process that ended in the task `failed`, after `good` ones."""
        for task in good:
            for trait in self.traits(task):
                self.counts.pop(trait, None)
        self.in_a_row = 1 if good else self.in_a_row + 1
        self.counts.update(self.traits(failed))

    def order(self, tasks):
        return sorted(tasks, key=lambda task: sum(self.counts[trait] for trait in self.traits(task)))

    def is_hopeless(self, left):
        """Whether so many failed in a row that nothing in `left` is of another kind."""
        traits = {trait for task in left for trait in self.traits(task)}
        return self.in_a_row >= MOST_FAILURES and all(self.counts[trait] for trait in traits)


def choose_counted(catalogue, call, misses):
    """The items whose DRAM bytes are counted. First are those that miss the model most: `misses` has the measured time
    over that of the model by name."""
    far = sorted(misses, key=lambda name: -max(misses[name], 1 / misses[name]))
    names = [name for name in far if name in catalogue.items]
    names += [name for name in catalogue.measured() if name not in misses]
    return names[:MOST_COUNTED] if call == "times" else names


def make_parts(catalogue, call, seed, cubins=False, dry_run=False):
    """The parts of a call with their tasks; choose_counted makes those of `counters` when that begins. `cubins`:
    whether the driver is as new as the toolkit that made binaries."""
    if not cubins:
        catalogue.drop_binaries()
    def by_turns(names):
        return take_turns(names, lambda name: catalogue.items[name].sizes)

    small = catalogue.small()
    random.Random(seed).shuffle(small)
    tasks = {
        "slots": ["clusters"],
        "smoke": catalogue.smoke(),
        "load": [name for name in catalogue.items if name not in set(small)],
        "benchmark": by_turns(catalogue.measured()),
        "alternatives": by_turns(catalogue.alternatives()),
        "compile": by_turns(catalogue.measured()),
        "correctness": small,
        "queued": catalogue.queued(),
        "sanitizer": catalogue.sanitizer_tasks(),
        "counters": choose_counted(catalogue, call, {}),
        "frameworks": [task for task in framework_tasks.make_tasks() if re.search(catalogue.shapes, task)],
    }
    return [dataclasses.replace(part, tasks=tasks[part.name]) for part in (DRY_CALLS if dry_run else CALLS)[call]]
