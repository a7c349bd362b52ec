"""Programs, as the generator, the evaluator and the reducer use them.

A program has arguments, operations in order, and returned values. Values are
numbered, arguments first. An operation has a kind (kinds.py lists them, each
with its types, text and values), operands and attributes. The types of its
results follow from those of its operands, so reducing an argument reduces all
dependent values.

All data can be stored as JSON: a stored case is a program.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from bounded import Bounded
from floats import FLOATS, decode, encode
from kinds import KINDS
from values import Argument, Op, Type


@dataclass
class Program:
    arguments: List[Argument] = field(default_factory=list)
    ops: List[Op] = field(default_factory=list)
    returns: List[int] = field(default_factory=list)
    form: str = "tensor"  # or "memref": arguments and results are memrefs
    result_layouts: List[Optional[Dict[str, Any]]] = field(default_factory=list)
    joined: int = -1  # unless -1: the results of the first one's type are slices of one memref, along this dim

    def to_json(self) -> Dict[str, Any]:
        return {
            "arguments": [{"shape": a.type.shape, "element": a.type.element, "dynamic": a.type.dynamic, "role": a.role,
                           "seed": a.seed, "special": a.special, "layout": a.layout, "by_channel": a.by_channel}
                          for a in self.arguments],
            "ops": [{"kind": op.kind, "operands": op.operands, "attrs": op.attrs,
                     **({"body": op.body.to_json()} if op.body else {})} for op in self.ops],
            "returns": self.returns, "form": self.form, "result_layouts": self.result_layouts, "joined": self.joined,
        }

    @staticmethod
    def from_json(data: Dict[str, Any]) -> "Program":
        arguments = [Argument(Type(tuple(a["shape"]), a["element"], tuple(a["dynamic"])), a["role"], a["seed"],
                              a["special"], a["layout"], tuple(a["by_channel"])) for a in data["arguments"]]
        ops = [Op(op["kind"], op["operands"], op["attrs"],
                  Program.from_json(op["body"]) if "body" in op else None) for op in data["ops"]]
        return Program(arguments, ops, data["returns"], data["form"], data["result_layouts"], data.get("joined", -1))

    def copy(self) -> "Program":
        return Program.from_json(json.loads(json.dumps(self.to_json())))

    def types(self, given: Optional[Sequence[Type]] = None) -> List[Type]:
        """The types of all values; raises Invalid."""
        types = list(given) if given is not None else [a.type for a in self.arguments]
        for op in self.ops:
            types += KINDS[op.kind].infer(op, [types[o] for o in op.operands])
        return types

    def evaluate(self, values: Sequence[Bounded], given: Optional[Sequence[Type]] = None) -> List[Bounded]:
        """All values with error bounds, computed from the arguments."""
        types = list(given) if given is not None else [a.type for a in self.arguments]
        values = list(values)
        for op in self.ops:
            operands = [types[o] for o in op.operands]
            values += KINDS[op.kind].evaluate(op, operands, [values[o] for o in op.operands])
            types += KINDS[op.kind].infer(op, operands)
        return values

    def joined_results(self) -> List[int]:
        """The results that are slices of one memref."""
        if self.joined < 0 or self.form != "memref":
            return []
        types = self.types()
        first = types[self.returns[0]]
        if any(first.dynamic) or self.joined > first.rank or not first.count:
            return []
        return [i for i, r in enumerate(self.returns) if types[r] == first]

    def result_ranges(self) -> Iterator[Tuple[Op, range]]:
        """Each operation, and the numbers of its results."""
        types = [a.type for a in self.arguments]
        for op in self.ops:
            results = KINDS[op.kind].infer(op, [types[o] for o in op.operands])
            yield op, range(len(types), len(types) + len(results))
            types += results

    def without_dead(self) -> "Program":
        """The program without unused operations and arguments."""
        needed = set(self.returns)
        ranges = list(self.result_ranges())
        kept = []
        for op, results in reversed(ranges):
            if needed & set(results):
                needed |= set(op.operands)
                kept.insert(0, (op, results))
        number: Dict[int, int] = {}
        arguments = []
        for index, argument in enumerate(self.arguments):
            if index in needed or not self.arguments[1:]:
                number[index] = len(arguments)
                arguments.append(argument)
        if not arguments:  # A function without arguments is valid.
            number = {}
        count, ops = len(arguments), []
        for op, results in kept:
            for result in results:
                number[result] = count
                count += 1
            ops.append(Op(op.kind, [number[o] for o in op.operands], op.attrs, op.body))
        return Program(arguments, ops, [number[r] for r in self.returns], self.form, list(self.result_layouts),
                       self.joined)


def channel_pattern(shape: Tuple[int, ...], dims: Sequence[int], random: np.random.Generator) -> np.ndarray:
    """A mean for each channel, so that an exchange of two is noticed."""
    sizes = [shape[d] if d in dims else 1 for d in range(len(shape))]
    return random.uniform(-0.75, 1.25, sizes)


def varied_channels(values: np.ndarray, pattern: np.ndarray, element: str, random: np.random.Generator) -> np.ndarray:
    """Channels that are ordinary, far from 0 against their spread, constant, or with an outlier at their first element."""
    distances = {"f16": [3, 30], "bf16": [3, 10], "f32": [30, 1e3, 1e4], "f64": [30, 1e4, 1e6]}[element]
    distance = distances[int(random.integers(len(distances)))]
    kind = random.choice(["ordinary", "ordinary", "far", "constant", "outlier"], pattern.shape)
    values = np.where(kind == "constant", 0, values)
    values = values + np.where(kind == "far", distance, 1) * pattern
    first = tuple(slice(1 if size == 1 else None) for size in pattern.shape)
    values[first] *= np.where(kind == "outlier", distance, 1)
    return values


SPECIALS = {
    "nan": [np.nan], "inf": [np.inf, -np.inf], "mixed": [np.nan, np.inf, -np.inf, 0.0, -0.0],
    "zero": [0.0, -0.0], "subnormal": ["subnormal"], "tiny": ["tiny"], "huge": ["huge"], "largest": ["largest"],
}


def make_data(argument: Argument) -> np.ndarray:
    """The bits of an argument; along dims with stride 0 all elements equal the first."""
    bits = independent_data(argument)
    if argument.layout and bits.size:
        for dim, stride in enumerate(argument.layout["strides"]):
            if stride == 0:
                bits = np.broadcast_to(bits.take([0], dim), bits.shape)
    return bits


def independent_data(argument: Argument) -> np.ndarray:
    """Roles: plain, varied (varied_channels), positive (0.5 to 2), mask, count."""
    type = argument.type
    random = np.random.default_rng([argument.seed, 7])
    if argument.role == "mask":
        return (random.random(type.shape) < 0.7).astype("|u1")
    if argument.role == "count":
        return np.full(type.shape, 3 + argument.seed % 50, "<i8")
    if argument.role == "positive":
        values = random.uniform(0.5, 2, type.shape)
    else:
        values = random.uniform(-1, 1, type.shape)
        pattern = channel_pattern(type.shape, argument.by_channel, random)
        values = varied_channels(values, pattern, type.element, random) if argument.role == "varied" else values + pattern
    if argument.special and type.count:
        kind = FLOATS[type.element]
        sizes = {"subnormal": float(kind.smallest) * 5, "tiny": float(kind.largest) ** -0.5,
                 "huge": float(kind.largest) ** 0.45, "largest": float(kind.largest)}
        choices = SPECIALS[argument.special]
        share = [0.02, 0.3, 1.0][int(random.integers(3))]
        flat = values.reshape(-1)
        picked = np.flatnonzero(random.random(flat.size) < share)
        if not len(picked):
            picked = [int(random.integers(flat.size))]
        for index in picked:
            choice = choices[int(random.integers(len(choices)))]
            if isinstance(choice, str):
                choice = sizes[choice] * (1 if argument.role == "positive" else np.sign(flat[index] or 1))
            flat[index] = abs(choice) if argument.role == "positive" else choice
    with np.errstate(all="ignore"):
        return encode(values, type.element).reshape(type.shape)


def exact(argument: Argument) -> Bounded:
    return Bounded(decode(make_data(argument), argument.type.element))


def expected(program: Program) -> List[Bounded]:
    """The returned values."""
    with np.errstate(all="ignore"):
        values = program.evaluate([exact(a) for a in program.arguments])
    return [values[r] for r in program.returns]
