"""The calls and parts of the GPU suite, in the order of their value, and their tasks."""

import dataclasses
import json
import pathlib
import random
import re

import items

HERE = pathlib.Path(__file__).resolve().parent
# Functions that one process of compute-sanitizer calls.
PIECE = 8
SANITIZERS = ("memcheck", "racecheck", "synccheck")
# The end of the smoke tests' names of functions that also are cubins.
AS_PTX = " as PTX"
# Cases whose DRAM bytes are counted among the times: those that miss the model most.
MOST_COUNTED = 4


@dataclasses.dataclass
class Part:
    """`limit` is for one task, in seconds. The part begins no task after the fraction
    `until` of the time of the call; other parts get the time that it leaves."""

    name: str
    limit: float
    until: float
    # Of device, torch.
    needs: tuple = ("device",)
    tasks: list = dataclasses.field(default_factory=list)

    def id(self, task):
        return f"{self.name}/{task}"


# The parts of each call, which is of use without the other.
CALLS = {
    "times": [
        Part("slots", 30, 0.1),
        Part("smoke", 20, 0.2),
        Part("benchmark", 40, 0.65),
        Part("counters", 60, 0.8),
        Part("compile", 60, 1, ("device", "torch")),
    ],
    "checks": [
        Part("correctness", 20, 0.35),
        Part("queued", 20, 0.55),
        Part("sanitizer", 60, 0.85),
        Part("counters", 60, 1),
    ],
}
DRY_CALLS = {
    "times": [Part("smoke", 60, 1, ()), Part("load", 60, 1, ())],
    "checks": [Part("correctness", 60, 1, ())],
}
# Parts that run in the process with PyTorch, if there is one.
WITH_TORCH = ("benchmark", "compile")


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
        self.folder = folder
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.items, self.entries, self.errors = {}, {}, {}
        for entry in self.manifest["items"]:
            item = make_item(entry)
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
        facts = {"layout": item.layout, "type": item.type, "tensor_bytes": item.case.tensor_bytes}
        return {**facts, "schedule": entry.get("chosen", ""), "model_us": entry.get("model_us", {})}

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

    def alternatives(self, name):
        """The names of the items with other schedules of a measured item, by schedule."""
        item = self.items[name]
        others = {each: dataclasses.replace(item, schedule=each).name for each in items.ALTERNATIVES}
        return {each: other for each, other in others.items() if other in self.items}

    def representatives(self, key):
        return [item.name for item in items.representatives([self.items[name] for name in self.small()], key)]

    def smoke(self):
        """The tasks of the smoke test: an item of each kernel, variant, layout, type and format, first all as cubins,
        where there are any, then as PTX."""
        names = self.representatives(items.kind_and_type)
        as_ptx = [name for name in names if self.has_cubin(name) and "object" in self.entries[name]]
        return names + [name + AS_PTX for name in as_ptx]

    def kinds(self):
        """An item of each kernel, variant and layout."""
        return self.representatives(items.kind)

    def pieces(self):
        """The items of `kinds`, in pieces for one process each."""
        names = self.kinds()
        # Items of one kernel are neighbours; each piece has several kernels.
        count = -(-len(names) // PIECE)
        return [names[first::count] for first in range(count)]


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
    small = catalogue.small()
    random.Random(seed).shuffle(small)
    tasks = {
        "slots": ["clusters"],
        "smoke": catalogue.smoke(),
        "load": [name for name in catalogue.items if name not in set(small)],
        "benchmark": catalogue.measured(),
        "compile": catalogue.measured(),
        "correctness": small,
        "queued": catalogue.kinds(),
        "sanitizer": [f"{tool} {n}" for n in range(len(catalogue.pieces())) for tool in SANITIZERS],
        "counters": choose_counted(catalogue, call, {}),
    }
    return [dataclasses.replace(part, tasks=tasks[part.name]) for part in (DRY_CALLS if dry_run else CALLS)[call]]
