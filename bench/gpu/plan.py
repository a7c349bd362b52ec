"""The parts of the GPU suite, in the order of their value, and their tasks."""

import dataclasses
import json
import pathlib
import random
import re

import items

HERE = pathlib.Path(__file__).resolve().parent
# Functions that one process of compute-sanitizer calls.
PIECE = 6
# Of a smoke test.
QUICK_ELEMENTS = 1 << 14
SANITIZERS = ("memcheck", "racecheck", "synccheck")


@dataclasses.dataclass
class Part:
    """`limit` is for one task, in seconds. The part begins no task after the fraction
    `until` of the time of the run; other parts get the time that it leaves."""

    name: str
    tasks: list
    limit: float
    until: float
    # Of device, torch.
    needs: tuple = ()

    def id(self, task):
        return f"{self.name}/{task}"


def make_item(entry):
    fields = ("layout", "type", "variant", "schedule", "format")
    return items.Item(tuple(entry["sizes"]), *(entry[field] for field in fields))


class Catalogue:
    """The items of a bundle with their objects."""

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
            if "object" in entry:
                self.items[item.name] = item
                self.entries[item.name] = entry

    def object(self, name, cubins):
        """The file of an item: with cubins, if there is one and `cubins`."""
        entry = self.entries[name]
        return self.folder / (entry.get("cubin", entry["object"]) if cubins else entry["object"])

    def describe(self, name):
        """The facts of a case for the table."""
        item = self.items[name]
        return {
            "layout": item.layout,
            "type": item.type,
            "tensor_bytes": item.case.tensor_bytes,
            "schedule": self.entries[name].get("chosen", ""),
        }

    def has_cubin(self, name):
        return "cubin" in self.entries[name]

    def drop_binaries(self):
        """Forgets the items that are binaries in any case."""
        for name in [name for name, item in self.items.items() if item.format != "isa"]:
            del self.items[name], self.entries[name]

    def small(self):
        return [name for name, item in self.items.items() if item.is_small]

    def measured(self):
        """Every kind of data early, as the time may not suffice for all."""
        queues = {}
        for name, entry in self.entries.items():
            if entry.get("measured"):
                item = self.items[name]
                queues.setdefault((item.type, item.layout), []).append(name)
        found = []
        while any(queues.values()):
            found += [queue.pop(0) for queue in queues.values() if queue]
        return found

    def smoke(self):
        """An item of each kernel, variant, layout and format: the largest that is quick."""
        found = {}
        for name in self.small():
            item = self.items[name]
            kind = (item.schedule, item.variant, item.layout, item.format)
            size = item.case.elements
            if item.type not in ("f32", "bf16") or size > QUICK_ELEMENTS:
                continue
            if kind not in found or size > self.items[found[kind]].case.elements:
                found[kind] = name
        return list(found.values())

    def sanitized(self):
        """Pieces of the items with every kernel and few elements."""
        few = {item.name for item in items.small(few=True) if item.format == "isa"}
        names = [name for name in self.small() if name in few]
        # Items of one kernel are neighbours; each piece has several kernels.
        count = -(-len(names) // PIECE)
        return [names[first::count] for first in range(count)]


def make_parts(catalogue, seed, cubins=False, dry_run=False):
    """`cubins`: whether the driver is as new as the toolkit that made binaries."""
    if not (cubins or dry_run):
        catalogue.drop_binaries()
    small = catalogue.small()
    random.Random(seed).shuffle(small)
    measured = catalogue.measured()
    if dry_run:
        isa = [name for name in small if catalogue.items[name].format == "isa"]
        rest = [name for name in catalogue.items if name not in set(isa)]
        return [
            Part("smoke", [n for n in catalogue.smoke() if n in set(isa)], 60, 1),
            Part("correctness", isa, 60, 1),
            Part("load", rest, 60, 1),
        ]
    pieces = catalogue.sanitized()
    sanitized = [f"{tool} {n}" for n in range(len(pieces)) for tool in SANITIZERS]
    counted = [name for name in items.COUNTED if name in catalogue.items]
    counted = counted or measured[:2]
    by_size = sorted(measured, key=lambda name: -catalogue.items[name].case.tensor_bytes)
    return [
        Part("smoke", catalogue.smoke(), 20, 0.11, ("device",)),
        Part("benchmark", measured, 40, 0.5, ("device",)),
        Part("correctness", small, 20, 0.66, ("device",)),
        Part("sanitizer", sanitized, 60, 0.82, ("device",)),
        Part("counters", counted, 60, 0.9, ("device",)),
        Part("compile", by_size, 60, 1, ("device", "torch")),
    ]
