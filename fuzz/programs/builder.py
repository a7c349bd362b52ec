"""Programs under construction: arguments, gradients and operations are added one by one."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from floats import FLOATS
from kinds import KINDS
from program import Program
from values import Argument, Invalid, Op, Type

CONSTANTS = [0.5, -1.25, 2.0, 0.75, 3.0, -0.5]


class Limits:
    """Limits of the size of programs of a kind."""

    def __init__(self, elements: int = 3000, depth: int = 3, ops: int = 14):
        self.elements, self.depth, self.ops = elements, depth, ops


class Builder:
    """A program under construction. `makers` produce a value of a given shape and type."""

    def __init__(self, random: np.random.Generator, limits: Limits, makers: Sequence[Callable],
                 outer: Optional["Builder"] = None):
        self.random, self.limits, self.makers, self.outer = random, limits, makers, outer
        self.program = Program()
        self.types: List[Type] = []
        self.dynamic = outer.dynamic if outer else self.pick([0, 0, 0.3, 0.6, 1])
        self.special = outer.special if outer else ""
        self.features: Tuple[int, ...] = ()
        self.given: List[int] = []  # values of the outer builder that are this one's
                                    # arguments
        self.seed = int(random.integers(2**31))

    def pick(self, values: Sequence):
        return values[int(self.random.integers(len(values)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def unknown(self, count: int) -> List[bool]:
        return [self.chance(self.dynamic) for _ in range(count)]

    def argument(self, shape: Sequence[int], element: str, role: str = "plain") -> int:
        """A new argument; the numbers of all operations' results increase."""
        type = Type(tuple(shape), element, tuple(self.unknown(len(shape))))
        if self.outer:
            number = self.outer.make(shape, element, 1, role)
            self.given.append(number)
            type = self.outer.types[number]
        index = len(self.program.arguments)
        by_channel = tuple(d for d in self.features if d < len(shape)) or tuple(range(min(1, len(shape))))
        special = self.special if role in ("plain", "positive", "varied") and self.chance(0.5) else ""
        self.program.arguments.append(Argument(type, role, self.seed + index, special, None, by_channel))
        self.types.insert(index, type)
        for op in self.program.ops:
            op.operands = [o + (o >= index) for o in op.operands]
        self.moved = index
        return index

    def add(self, kind: str, operands: List[int], body: Optional[Program] = None, **attrs) -> List[int]:
        op = Op(kind, list(operands), attrs, body)
        results = KINDS[kind].infer(op, [self.types[o] for o in operands])
        for type in results:
            if type.count > 4 * self.limits.elements + 64 or type.rank > 7:
                raise Invalid("too large")
        self.program.ops.append(op)
        first = len(self.types)
        self.types += results
        return list(range(first, len(self.types)))

    def make_all(self, wanted: Sequence[Tuple]) -> List[int]:
        """Several values; a new argument renumbers the earlier ones."""
        made: List[int] = []
        for what in wanted:
            before = len(self.program.arguments)
            number = what() if callable(what) else self.make(*what)
            added = len(self.program.arguments) - before
            made = [m + added * (m >= before) for m in made]
            made.append(number)
        return made

    def after(self, numbers: List[int], action: Callable) -> Tuple[List[int], Any]:
        """Calls a function that may add arguments; `numbers` after that, and its result."""
        before = len(self.program.arguments)
        result = action()
        added = len(self.program.arguments) - before
        return [n + added * (n >= before) for n in numbers], result

    def room(self) -> bool:
        return len(self.program.ops) < self.limits.ops

    def make(self, shape: Sequence[int], element: str, depth: int, role: str = "plain") -> int:
        shape = tuple(int(s) for s in shape)
        found = [i for i, t in enumerate(self.types) if t.shape == shape and t.element == element]
        if role == "plain" and found and self.chance(0.3):
            return self.pick(found)
        if role == "mask":
            if depth > 0 and self.room() and self.chance(0.3):
                return self.condition(shape, depth)
            return self.argument(shape, "i1", "mask")
        if depth <= 0 or not self.room() or role == "count" or self.chance(0.35):
            return self.argument(shape, element, role)
        if role == "positive":
            if self.chance(0.7):
                return self.argument(shape, element, role)
            source = self.make(shape, element, depth - 1)
            steps = [["absf", 0], ["const", 0.5, element], ["addf", 1, 2]]
            return self.add("map", [source], style=self.pick(["arith", "generic", "map"]),
                            maps=[list(range(len(shape)))], steps=steps, outs=[3], flags="")[0]
        for _ in range(4):
            try:
                return self.pick(self.makers)(self, shape, element, depth)
            except Invalid:
                continue
        return self.argument(shape, element, role)

    def condition(self, shape, depth) -> int:
        element = self.pick(list(FLOATS))
        operands = self.make_all([(shape, element, depth - 1)])
        steps = [["const", self.pick([0.0, 0.25]), element], ["cmpf", self.pick(["ogt", "olt", "uge"]), 0, 1]]
        return self.add("map", operands, style=self.pick(["arith", "generic"]), maps=[list(range(len(shape)))],
                        steps=steps, outs=[2], flags="")[0]

    def elements(self) -> Tuple[str, str]:
        data = self.pick(["f32", "f32", "f32", "bf16", "f16", "f64"])
        return data, self.pick([data, "f32", self.pick(list(FLOATS))])

    def operands_of(self, names, shape, channels, data, parameter, depth, first=None, input_role="plain") -> List[int]:
        """Operands in the order of `names`; `first` is given."""
        types = {"grad_output": (shape, data), "input": (shape, data), "mask": (shape, "i1"),
                 "sums": ((2,) + channels, parameter), "count": ((), "i64")}
        roles = {"variance": "positive", "inv_std": "positive", "mask": "mask", "count": "count", "input": input_role}
        wanted = []
        for name in names:
            inner = depth - 1 if name in ("grad_output", "input", "mask") else depth - 2
            wanted.append((*types.get(name, (channels, parameter)), inner, roles.get(name, "plain")))
        if first is None:
            return self.make_all(wanted)
        place, value = first
        wanted[place] = None
        made, count = [], len(self.program.arguments)
        numbers = self.make_all([w for w in wanted if w])
        value += (len(self.program.arguments) - count) * (value >= count)
        made = iter(numbers)
        return [next(made) if w else value for w in wanted]

    def choose_features(self, rank: int) -> Tuple[int, ...]:
        few = min(rank, self.pick([1, 1, 1, 2, 3, rank]))
        features = tuple(sorted(self.random.choice(rank, few, replace=False).tolist()))
        if self.features and max(self.features) < rank and self.chance(0.6):
            features = self.features
        return features

    def any_op(self, shape, depth: int, first: Optional[int] = None, has_no_sums: bool = False) -> List[int]:
        """Any op of the dialect; `first` is its grad_output or input."""
        if self.chance(0.5):
            return self.forward(shape, depth, first, has_no_sums=has_no_sums)
        place = None if first is None else (self.pick(["grad_output", "input"]), first)
        return self.gradient(shape, depth, place, has_no_sums=has_no_sums)

    def gradient(self, shape, depth: int, first: Optional[Tuple[str, int]] = None, half: str = "",
                 has_no_sums: bool = False) -> List[int]:
        """Any of the three ops of the gradient; `first` is the given operand, grad_output or input. Without sums, each
        element is a channel of its own: M = 1."""
        shape = tuple(shape)
        half = half or self.pick(["gradient"] * 5 + ["sums", "element"])
        data, parameter = self.elements()
        if first:
            data = self.types[first[1]].element
        features = tuple(range(len(shape))) if has_no_sums else self.choose_features(len(shape))
        self.features = self.features or features
        channels = tuple(shape[d] for d in features)
        names = ["grad_output", "input"] + ["scale"] * self.chance(0.6) * (half != "sums") + ["mean"]
        if half != "sums":
            names.append(self.pick(["variance", "inv_std"]))
        if half == "element" and self.chance(0.8):
            names += ["sums"] + ["count"] * self.chance(0.6)
        names += ["mask"] * self.chance(0.3)
        place = names.index(first[0]) if first else 0
        operands = self.operands_of(names, shape, channels, data, parameter, depth, first and (place, first[1]))
        attrs = {"names": names, "features": list(features)}
        if half != "sums":
            attrs.update(epsilon=self.epsilon(names), statistics=self.pick(["batch", "batch", "batch", "global"]),
                         elements=self.result_elements([data, parameter, parameter]))
        return self.add(half, operands, **attrs)

    def epsilon(self, names: Sequence[str]) -> float:
        """In f32, the last one is 0."""
        return 0.0 if "inv_std" in names else self.pick([0.0, 1e-3, 1e-5, 1e-5, 0.5, 0.5, 1e-50])

    def result_elements(self, usual: List[str]) -> List[str]:
        return [self.pick(list(FLOATS)) for _ in usual] if self.chance(0.2) else usual

    def forward(self, shape, depth: int, first: Optional[int] = None, half: str = "",
                has_no_sums: bool = False) -> List[int]:
        """Any of the three ops of the forward pass; `first` is the given input."""
        shape = tuple(shape)
        half = half or self.pick(["training"] * 4 + ["inference", "moments"])
        data, parameter = self.elements()
        if first is not None:
            data = self.types[first].element
        features = tuple(range(len(shape))) if has_no_sums else self.choose_features(len(shape))
        self.features = self.features or features
        names = ["input"] + (["shift"] * self.chance(0.6) if half == "moments" else
                             ["scale"] * self.chance(0.6) + ["offset"] * self.chance(0.6))
        if half == "inference":
            names += ["mean", self.pick(["variance", "inv_std"])]
        channels = tuple(shape[d] for d in features)
        operands = self.operands_of(names, shape, channels, data, parameter, depth,
                                    None if first is None else (0, first), self.pick(["plain", "varied"]))
        attrs = {"names": names, "features": list(features)}
        if half == "training":
            statistic = self.pick([parameter, "f32", "f32"])
            attrs.update(epsilon=self.epsilon(names), elements=self.result_elements([data] + [statistic] * 3))
        if half == "inference":
            attrs.update(epsilon=self.epsilon(names), elements=self.result_elements([data]))
        return self.add(half, operands, **attrs)
