"""Random programs: gradients among other operations.

The operands of a gradient are generated backwards from its shapes (`make`),
the users of its results forwards (`use`). The seed determines the program.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

import known
from floats import FLOATS
from operations import KINDS
from program import SPECIALS, Argument, Invalid, Op, Program, Type, expected

CONSTANTS = [0.5, -1.25, 2.0, 0.75, 3.0, -0.5]
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 19, 31, 32, 33, 64, 65]
LARGE = [127, 128, 129, 257, 784, 1000, 1031, 4096, 8193, 16384, 17001]


class Limits:
    """Limits of the size of programs of a kind."""

    def __init__(self, elements: int = 3000, depth: int = 3, ops: int = 14):
        self.elements, self.depth, self.ops = elements, depth, ops


class Kind(NamedTuple):
    """A kind of programs: the number that goes into seeds, and limits."""

    number: int
    depth: int
    ops: int


# views: memrefs with strides; special: NaN, infinities, subnormal and huge numbers; chains: gradients whose data are a
# per-channel result of another.
PROGRAM_KINDS = {
    "programs": Kind(1, 3, 14),
    "views": Kind(2, 1, 4),
    "special": Kind(3, 1, 5),
    "chains": Kind(4, 1, 8),
}


class Builder:
    def __init__(self, random: np.random.Generator, limits: Limits, outer: Optional["Builder"] = None):
        self.random, self.limits, self.outer = random, limits, outer
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
        special = self.special if role in ("plain", "positive") and self.chance(0.5) else ""
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
        from neighbours import MAKERS

        for _ in range(4):
            try:
                return self.pick(MAKERS)(self, shape, element, depth)
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

    def operands_of(self, names, shape, channels, data, parameter, depth, first=None) -> List[int]:
        """Operands in the order of `names`; `first` is given."""
        types = {"grad_output": (shape, data), "input": (shape, data), "mask": (shape, "i1", 0, "mask"),
                 "sums": ((2,) + channels, parameter), "count": ((), "i64", 0, "count")}
        wanted = []
        for name in names:
            shape_and_type = types.get(name, (channels, parameter))
            role = {"variance": "positive", "inv_std": "positive", "mask": "mask", "count": "count"}.get(name, "plain")
            inner = depth - 1 if name in ("grad_output", "input", "mask") else depth - 2
            wanted.append((*shape_and_type[:2], inner, role))
        if first is None:
            return self.make_all(wanted)
        place, value = first
        wanted[place] = None
        made, count = [], len(self.program.arguments)
        numbers = self.make_all([w for w in wanted if w])
        value += (len(self.program.arguments) - count) * (value >= count)
        made = iter(numbers)
        return [next(made) if w else value for w in wanted]

    def gradient(self, shape, depth: int, first: Optional[Tuple[str, int]] = None, half: str = "",
                 has_no_sums: bool = False) -> List[int]:
        """Any of the three ops; `first` is the given operand, grad_output or input. Without sums, each element is a
        channel of its own: M = 1."""
        shape = tuple(shape)
        rank = len(shape)
        half = half or self.pick(["gradient"] * 5 + ["sums", "element"])
        data, parameter = self.elements()
        if first:
            data = self.types[first[1]].element
        few = min(rank, self.pick([1, 1, 1, 2, 3, rank]))
        features = tuple(sorted(self.random.choice(rank, few, replace=False).tolist()))
        if self.features and max(self.features) < rank and self.chance(0.6):
            features = self.features
        if has_no_sums:
            features = tuple(range(rank))
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
            epsilon = self.pick([0.0, 1e-3, 1e-5, 0.5]) if "variance" in names else 0.0
            elements = [data, parameter, parameter]
            if self.chance(0.2):
                elements = [self.pick(list(FLOATS)) for _ in range(3)]
            statistics = self.pick(["batch", "batch", "batch", "global"])
            attrs.update(epsilon=epsilon, statistics=statistics, elements=elements)
        return self.add(half, operands, **attrs)


def random_shape(builder: Builder, limit: int) -> Tuple[int, ...]:
    """Ranks 1 to 6; sizes 0, 1, odd, prime, rarely large."""
    rank = builder.pick([1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6])
    shape: List[int] = []
    for _ in range(rank):
        room = max(1, limit // max(1, math.prod(shape)))
        fitting = [s for s in SIZES if s <= room]
        if rank > 3:
            fitting = [s for s in fitting if s <= 9]
        shape.append(builder.pick(fitting))
    if builder.chance(0.08):
        shape[int(builder.random.integers(rank))] = builder.pick([s for s in LARGE if s <= max(limit, 127)])
        while math.prod(shape) > 2 * limit:
            largest = sorted(range(rank), key=lambda d: shape[d])[-2 if rank > 1 and shape[0] != max(shape) else -1]
            others = [d for d in range(rank) if d != int(np.argmax(shape)) and shape[d] > 1]
            shape[others[0] if others else largest] = 1 if others else limit
    if builder.chance(0.04):
        shape[int(builder.random.integers(rank))] = 0
    order = builder.random.permutation(rank)
    return tuple(shape[i] for i in order)


def layout(builder: Builder, type: Type, is_result: bool) -> dict:
    """Layout of a memref: cropped, stepped, transposed, offset, expanded, reversed."""
    rank = type.rank
    order = list(builder.random.permutation(rank)) if builder.chance(0.5) else list(range(rank))
    strides, extent = [0] * rank, 1
    for dim in reversed(order):
        step = builder.pick([1, 1, 1, 2, 3])
        strides[dim] = extent * step
        extent = strides[dim] * max(1, type.shape[dim]) + builder.pick([0, 0, 1, 3]) * extent
        if not is_result and builder.chance(0.07):
            strides[dim] = 0
    offset = builder.pick([0, 0, 1, 3, 16])
    says = builder.pick(["dynamic", "dynamic", "static", "identity"])
    if says == "dynamic":
        for dim in range(rank):
            if builder.chance(0.1):
                offset += strides[dim] * max(0, type.shape[dim] - 1)
                strides[dim] = -strides[dim]
    if says == "identity":
        strides = [math.prod(type.shape[d + 1:]) for d in range(rank)]
        offset = 0
    return {"says": says, "strides": [int(s) for s in strides], "offset": int(offset)}


def attempt(random: np.random.Generator, limits: Limits, kind: str) -> Program:
    from neighbours import use

    builder = Builder(random, limits)
    if kind == "special":
        builder.special = builder.pick(list(SPECIALS))
    shape = random_shape(builder, limits.elements)
    results: List[int] = []

    def grown(numbers: List[int], action) -> List[int]:
        """Calls a function that may add arguments, and renumbers all of `numbers`."""
        before = len(builder.program.arguments)
        new = action()
        added = len(builder.program.arguments) - before
        return [n + added * (n >= before) for n in numbers] + new

    depth = builder.pick([0, 1, 2, limits.depth])
    for _ in range(builder.pick([1, 1, 1, 2])):
        results = grown(results, lambda: builder.gradient(shape, depth))
    if kind == "chains":
        for _ in range(builder.pick([1, 1, 2])):
            value = builder.pick([r for r in results if builder.types[r].rank])
            place = builder.pick(["grad_output", "input"])
            results = grown(results, lambda: builder.gradient(builder.types[value].shape, 1, (place, value),
                                                              has_no_sums=builder.chance(0.7)))
    used = list(results)
    for _ in range(builder.pick([0, 0, 1, 1, 2, 3, 4]) if depth else builder.pick([0, 0, 1])):
        value = builder.pick(used)
        try:
            used = grown(used, lambda: use(builder, value))
        except Invalid:
            continue
    count = int(random.integers(1, min(len(used), 4) + 1))
    returns = sorted(random.choice(len(used), count, replace=False).tolist())
    program = builder.program
    program.returns = [used[r] for r in returns]
    if used[-1] not in program.returns and builder.chance(0.7):
        program.returns.append(used[-1])
    if builder.chance(0.08):
        program.returns.append(builder.pick(program.returns))
    if builder.chance(0.05):
        program.returns.append(int(random.integers(len(program.arguments))))
    program = program.without_dead()
    if kind == "views" or (kind == "programs" and builder.chance(0.12)):
        add_layouts(builder, program)
    return program


def add_layouts(builder: Builder, program: Program) -> None:
    """Converts a program to memrefs; each result has its own memref."""
    program.form = "memref"
    types = program.types()
    for argument in program.arguments:
        argument.layout = layout(builder, argument.type, False)
    if builder.chance(0.15):
        program.joined = int(builder.random.integers(types[program.returns[0]].rank + 1))
        if len(program.joined_results()) == 1:  # The value goes to both slices.
            program.returns.append(program.returns[0])
    program.result_layouts = [layout(builder, types[r], True) for r in program.returns]


def generate(seed: int, kind: str = "programs") -> Program:
    """kind: one of PROGRAM_KINDS."""
    number, depth, ops = PROGRAM_KINDS[kind]
    random = np.random.default_rng([seed, number])
    size = [200, 800, 3000, 3000, 20000][int(random.integers(5))]
    limits = Limits(size, depth, ops)
    for _ in range(50):
        try:
            program = known.avoid(attempt(random, limits, kind))
            values = expected(program)
        except Invalid:
            continue
        # Overflowing values test nothing.
        with np.errstate(all="ignore"):
            errors = [v.error[np.isfinite(v.value)] for v in values if v.value.size]
            is_tame = all(np.isfinite(e).mean() > 0.5 if e.size else True for e in errors)
        if kind == "special" or is_tame:
            return program
    raise RuntimeError(f"seed {seed}: no program found")
