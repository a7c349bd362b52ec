"""Operations beside those of the dialect: producers of a value of a given type, and users of a value."""

from typing import Callable, List

import numpy as np

from floats import FLOATS
from builder import CONSTANTS, Builder, Limits
from values import Argument, Invalid

FLAGS = ["", "", "", "contract", "reassoc", "contract, reassoc"]


def factor(b: Builder, size: int, parts: int) -> List[int]:
    """Sizes with this product."""
    found = []
    for _ in range(parts - 1):
        divisors = [d for d in range(1, size + 1) if size % d == 0] if size else [b.pick([0, 1, 2])]
        found.append(b.pick(divisors))
        size = size // found[-1] if found[-1] else b.pick([1, 2, 3])
    return found + [size]


def random_steps(b: Builder, elements: List[str], element: str) -> List[List]:
    """Steps that use every input and end in a value of this type."""
    steps: List[List] = []
    elements = list(elements)

    def step(what: List, type: str) -> int:
        steps.append(what)
        elements.append(type)
        return len(elements) - 1

    def converted(number: int, to: str) -> int:
        before = elements[number]
        if before == to:
            return number
        if before == "i1":
            return step(["uitofp", number, to], to)
        if FLOATS[before].bits == FLOATS[to].bits:
            number = step(["extf", number, "f32"], "f32")
            before = "f32"
        return step(["extf" if FLOATS[before].bits < FLOATS[to].bits else "truncf", number, to], to)

    inputs = [converted(i, element) for i in range(len(elements))]
    value = inputs[0]
    for other in inputs[1:] + [None] * b.pick([0, 0, 1, 2]):
        value = combine(b, step, value, other, element)
    if value < len(inputs) or not steps:
        value = step(["negf", value], element)
    if value != len(elements) - 1:
        value = step(["absf", value], element)
    return steps


def combine(b: Builder, step: Callable, value: int, other, element: str) -> int:
    if other is None:
        kind = b.pick(["negf", "absf", "tanh", "relu", "scale", "shift", "exp", "sqrt", "sin", "round", "rsqrt"])
        if kind in ("negf", "absf", "tanh", "sin"):
            return step([kind, value], element)
        constant = step(["const", b.pick(CONSTANTS), element], element)
        if kind == "relu":
            condition = step(["cmpf", b.pick(["ogt", "ole", "ult", "one"]), value, constant], "i1")
            return step(["select", condition, value, constant], element)
        if kind == "scale":
            return step(["mulf", value, constant], element)
        if kind == "shift":
            return step([b.pick(["addf", "subf", "maximumf", "minimumf", "divf"]), value, constant], element)
        if kind == "exp":
            return step(["exp", step(["tanh", value], element)], element)
        if kind == "round" and element == "f32":
            narrow = b.pick(["f16", "bf16"])
            return step(["extf", step(["truncf", value, narrow], narrow), "f32"], "f32")
        one = step(["const", 1.0, element], element)
        positive = step(["addf", step(["absf", value], element), one], element)
        return step(["rsqrt" if kind == "rsqrt" else "sqrt", positive], element)
    what = b.pick(["addf", "subf", "mulf", "mulf", "maximumf", "minimumf", "select", "fma", "addf"])
    if what == "select":
        condition = step(["cmpf", b.pick(["ogt", "olt", "oge"]), value, other], "i1")
        return step(["select", condition, value, other], element)
    if what == "fma":
        return step(["fma", value, other, b.pick([value, other])], element)
    return step([what, value, other], element)


def elementwise(b: Builder, shape, element, depth, first=None) -> List[int]:
    """An operation on one to three operands; `first` is given."""
    rank = len(shape)
    style = b.pick(["arith", "arith", "generic", "generic", "map"])
    wanted, maps = [], []
    if first is not None:
        maps.append(list(range(rank)))
    for _ in range(b.pick([0, 1, 1, 2]) if first is not None else b.pick([1, 1, 2, 3])):
        loops = list(range(rank))
        if style == "generic" and maps and b.chance(0.6):
            loops = [int(d) for d in b.random.permutation(rank)]
            if b.chance(0.6):
                loops = sorted(loops[:int(b.random.integers(rank + 1))]) if b.chance(0.7) else loops[:-1]
        type = element if b.chance(0.8) else b.pick(list(FLOATS))
        maps.append(loops)
        wanted.append(([shape[d] for d in loops], type, depth - 1))
    count = len(b.program.arguments)
    operands = b.make_all(wanted)
    if first is not None:
        first += (len(b.program.arguments) - count) * (first >= count)
        operands = [first] + operands
    steps = random_steps(b, [b.types[o].element for o in operands], element)
    outs = [len(operands) + len(steps) - 1]
    if style != "map" and b.chance(0.15):
        outs.append(int(b.random.integers(len(operands), len(operands) + len(steps))))
        outs = list(dict.fromkeys(outs))
    flags = b.pick(FLAGS) if not b.special else ""
    return b.add("map", operands, style=style, maps=maps, steps=steps, outs=outs, flags=flags)


def make_elementwise(b, shape, element, depth):
    return elementwise(b, shape, element, depth)[0]


def make_transpose(b, shape, element, depth):
    order = [int(d) for d in b.random.permutation(len(shape))]
    source = [0] * len(shape)
    for place, dim in enumerate(order):
        source[dim] = shape[place]
    return b.add("transpose", [b.make(source, element, depth - 1)], order=order)[0]


def make_broadcast(b, shape, element, depth):
    if not shape:
        raise Invalid("rank 0")
    count = int(b.random.integers(1, len(shape) + 1))
    dims = sorted(int(d) for d in b.random.choice(len(shape), count, replace=False))
    source = [s for d, s in enumerate(shape) if d not in dims]
    return b.add("broadcast", [b.make(source, element, depth - 1)], dims=dims, sizes=[shape[d] for d in dims])[0]


def make_slice(b, shape, element, depth):
    source, offsets, sizes, strides, dropped = [], [], [], [], []
    for size in shape:
        if b.chance(0.12) and len(source) < 6:
            dropped.append(len(source))
            stride = b.pick([1, 1, 2])
            offsets.append(b.pick([0, 1])), sizes.append(1), strides.append(stride)
            source.append(offsets[-1] + b.pick([1, 2, 3]))
        stride = b.pick([1, 1, 1, 2, 3])
        offsets.append(b.pick([0, 0, 1, 2])), sizes.append(size), strides.append(stride)
        source.append(offsets[-1] + max(0, size - 1) * stride + 1 + b.pick([0, 0, 1, 2]))
    value = b.make(source, element, depth - 1)
    unknown = [b.chance(b.dynamic * 0.5) and d not in dropped for d in range(len(sizes))]
    moving = [b.chance(b.dynamic * 0.3) for _ in sizes]
    return b.add("slice", [value], offsets=offsets, sizes=sizes, strides=strides, dropped=dropped, unknown=unknown,
                 moving=moving)[0]


def make_pad(b, shape, element, depth):
    low = [min(b.pick([0, 0, 1]), s) for s in shape]
    high = [min(b.pick([0, 0, 1, 2]), s - l) for s, l in zip(shape, low)]
    source = [s - l - h for s, l, h in zip(shape, low, high)]
    return b.add("pad", [b.make(source, element, depth - 1)], low=low, high=high, value=b.pick(CONSTANTS))[0]


def groups_of(b, rank):
    """Adjacent dims, in groups."""
    groups: List[List[int]] = []
    for dim in range(rank):
        if groups and b.chance(0.5):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return groups


def make_expand(b, shape, element, depth):
    groups = groups_of(b, len(shape))
    source = [int(np.prod([shape[d] for d in g])) for g in groups]
    return b.add("expand", [b.make(source, element, depth - 1)], groups=groups, shape=list(shape),
                 unknown=b.unknown(len(shape)))[0]


def split_sizes(b, shape):
    finer, groups = [], []
    for size in shape:
        parts = factor(b, size, b.pick([1, 1, 2, 2, 3])) if len(shape) < 5 else [size]
        groups.append(list(range(len(finer), len(finer) + len(parts))))
        finer += parts
    return finer, groups


def make_collapse(b, shape, element, depth):
    finer, groups = split_sizes(b, shape)
    return b.add("collapse", [b.make(finer, element, depth - 1)], groups=groups)[0]


def make_reduce(b, shape, element, depth):
    if len(shape) > 4:
        raise Invalid("rank")
    rank = len(shape) + b.pick([1, 1, 2])
    dims = sorted(int(d) for d in b.random.choice(rank, rank - len(shape), replace=False))
    kept = iter(shape)
    source = [b.pick([1, 2, 3, 5]) if d in dims else next(kept) for d in range(rank)]
    narrow = element if element != "f32" or b.chance(0.7) else b.pick(["f16", "bf16"])
    return reduce(b, b.make(source, narrow, depth - 1), dims, element, list(range(rank)))[0]


def reduce(b, value, dims, element, order):
    style = b.pick(["generic", "linalg"]) if order == sorted(order) else "generic"
    combine = b.pick(["addf", "addf", "addf", "maximumf", "minimumf"])
    return b.add("reduce", [value], style=style, dims=dims, order=order, combine=combine, reassoc=b.chance(0.5),
                 element=element, init=b.pick([0.0, 0.0, 0.5, -1.25]))


def make_concat(b, shape, element, depth):
    if not shape:
        raise Invalid("rank 0")
    dim = int(b.random.integers(len(shape)))
    part = int(b.random.integers(shape[dim] + 1))
    pieces = [[p if d == dim else s for d, s in enumerate(shape)] for p in (part, shape[dim] - part)]
    return b.add("concat", b.make_all([(p, element, depth - 1) for p in pieces]), dim=dim)[0]


def make_insert(b, shape, element, depth):
    strides = [b.pick([1, 1, 2]) for _ in shape]
    sizes = [int(b.random.integers((s + n - 1) // n + 1)) if b.chance(0.6) else (s + n - 1) // n
             for s, n in zip(shape, strides)]
    offsets = [int(b.random.integers(s - max(0, (z - 1) * n + 1) + 1)) if z else 0
               for s, z, n in zip(shape, sizes, strides)]
    added = [d for d, z in enumerate(sizes) if z == 1 and b.chance(0.4)]
    source = [z for d, z in enumerate(sizes) if d not in added]
    operands = b.make_all([(source, element, depth - 1), (shape, element, depth - 1)])
    return b.add("insert", operands, offsets=offsets, strides=strides, added=added)[0]


def make_cast(b, shape, element, depth):
    return b.add("cast", [b.make(shape, element, depth - 1)], unknown=[b.chance(0.5) for _ in shape])[0]


def make_constant(b, shape, element, depth):
    return b.add("constant", [], shape=list(shape), element=element, value=b.pick(CONSTANTS))[0]


def make_batch_norm(b, shape, element, depth):
    """A chain: a result of another op of the dialect."""
    if not shape:
        raise Invalid("rank 0")
    value = b.make(shape, element, depth - 1)
    return as_element(b, batch_norm(b, shape, depth - 1, value), element)


def batch_norm(b, shape, depth, value):
    """The result with the shape of the data of an op on `value`."""
    if b.chance(0.5):
        return b.forward(shape, depth, value, b.pick(["training", "inference"]))[0]
    return b.gradient(shape, depth, ("grad_output", value), b.pick(["gradient", "element"]))[0]


def as_element(b, value, element):
    before = b.types[value].element
    if before == element:
        return value
    steps = random_steps(b, [before], element)
    return b.add("map", [value], style="arith", maps=[list(range(b.types[value].rank))], steps=steps,
                 outs=[len(steps)], flags="")[0]


def make_region(b, shape, element, depth):
    """scf.for, scf.if or a call."""
    value = b.make(shape, element, depth - 1)
    return region(b, value)[0]


def region(b: Builder, value: int) -> List[int]:
    type = b.types[value]
    kind = b.pick(["for", "if", "call"])
    inner = Builder(b.random, Limits(b.limits.elements, 1, 3), b.makers)
    inner.dynamic, inner.special, inner.features = b.dynamic, b.special, b.features
    inner.outer = b
    count = [value]

    class Outer:
        """Generates the captured values in the outer program."""

        def make(self, shape, element, depth, role):
            start = len(b.program.arguments)
            number = b.make(shape, element, 0 if depth < 1 else 1, role)
            added = len(b.program.arguments) - start
            for numbers in (count, inner.given):
                numbers[:] = [n + added * (n >= start) for n in numbers]
            return number

        types = b.types

    inner.outer = Outer()
    inner.program.arguments.append(_plain(type))
    inner.types.append(type)
    shape = type.shape
    if b.chance(0.5) and shape and type.element in FLOATS:
        result = as_element(inner, batch_norm(inner, shape, 1, 0), type.element)
    else:
        result = elementwise(inner, shape, type.element, 1, 0)[0]
    inner.program.returns = [result]
    operands = count + inner.given
    if kind == "for":
        return b.add("for", operands, inner.program, iters=1, trips=b.pick([0, 1, 2, 3]))
    if kind == "if":
        return b.add("if", operands, inner.program, otherwise=0, taken=b.chance(0.5), by=0)
    return b.add("call", operands, inner.program)


def _plain(type):
    return Argument(type)


MAKERS = [make_elementwise] * 6 + [make_transpose, make_broadcast, make_slice, make_slice, make_pad, make_expand,
          make_collapse, make_reduce, make_concat, make_insert, make_cast, make_constant, make_batch_norm, make_region]


def use(b: Builder, value: int) -> List[int]:
    """Another operation on an existing value."""
    type = b.types[value]
    if type.element not in FLOATS:
        raise Invalid("no operation of a count or a mask")
    shape, element = type.shape, type.element
    kind = b.pick(["elementwise"] * 4 + ["transpose", "slice", "pad", "expand", "collapse", "reduce", "reduce",
                                         "insert", "concat", "cast", "broadcast", "batch_norm", "region", "narrow"])
    if kind == "elementwise":
        return elementwise(b, shape, element, 1, value)
    if kind == "narrow":
        return [as_element(b, value, b.pick(list(FLOATS)))]
    if kind == "region":
        return region(b, value)
    if kind == "batch_norm" and shape:
        return b.any_op(shape, 1, value)
    if kind == "transpose":
        return b.add("transpose", [value], order=[int(d) for d in b.random.permutation(type.rank)])
    if kind == "collapse":
        return b.add("collapse", [value], groups=groups_of(b, type.rank))
    if kind == "expand":
        finer, groups = split_sizes(b, shape)
        return b.add("expand", [value], groups=groups, shape=finer, unknown=b.unknown(len(finer)))
    if kind == "reduce" and shape:
        count = int(b.random.integers(1, type.rank + 1))
        dims = sorted(int(d) for d in b.random.choice(type.rank, count, replace=False))
        order = [int(d) for d in b.random.permutation(type.rank)] if b.chance(0.4) else list(range(type.rank))
        return reduce(b, value, dims, element, order)
    if kind == "pad":
        return b.add("pad", [value], low=[b.pick([0, 0, 1]) for _ in shape], high=[b.pick([0, 1, 2]) for _ in shape],
                     value=b.pick(CONSTANTS))
    if kind == "cast":
        return b.add("cast", [value], unknown=[b.chance(0.5) for _ in shape])
    if kind == "broadcast":
        dim = int(b.random.integers(type.rank + 1))
        return b.add("broadcast", [value], dims=[dim], sizes=[b.pick([1, 2, 3])])
    return use_slices(b, value, type, kind)


def use_slices(b: Builder, value: int, type, kind: str) -> List[int]:
    shape, element = type.shape, type.element
    if kind == "slice":
        strides = [b.pick([1, 1, 2]) for _ in shape]
        offsets = [min(b.pick([0, 0, 1]), max(0, s - 1)) for s in shape]
        sizes = [max(0, (s - o + n - 1) // n) for s, o, n in zip(shape, offsets, strides)]
        sizes = [max(0, z - b.pick([0, 0, 1])) for z in sizes]
        dropped = [d for d, z in enumerate(sizes) if z == 1 and b.chance(0.5)]
        unknown = [b.chance(b.dynamic * 0.5) and d not in dropped for d in range(len(sizes))]
        return b.add("slice", [value], offsets=offsets, sizes=sizes, strides=strides, dropped=dropped,
                     unknown=unknown, moving=[b.chance(b.dynamic * 0.3) for _ in sizes])
    start = len(b.program.arguments)
    if kind == "insert":
        offsets = [b.pick([0, 1, 2]) for _ in shape]
        into = [o + s + b.pick([0, 0, 1]) for o, s in zip(offsets, shape)]
        other = b.make(into, element, 1)
        value += (len(b.program.arguments) - start) * (value >= start)
        return b.add("insert", [value, other], offsets=offsets, strides=[1] * len(shape), added=[])
    if kind == "concat" and shape:
        dim = int(b.random.integers(len(shape)))
        other = b.make([b.pick([0, 1, 2, 3]) if d == dim else s for d, s in enumerate(shape)], element, 1)
        value += (len(b.program.arguments) - start) * (value >= start)
        return b.add("concat", [value, other] if b.chance(0.5) else [other, value], dim=dim)
    raise Invalid("no such use")
