"""Random programs: ops of the dialect among other operations.

The operands of an op are generated backwards from its shapes (`make`),
the users of its results forwards (`use`). The seed determines the program.
"""

import math
from functools import partial
from typing import List, NamedTuple, Tuple

import numpy as np

import forward  # noqa: F401 (kinds)
import gradients  # noqa: F401 (kinds)
import known
import moves  # noqa: F401 (kinds)
import operations  # noqa: F401 (kinds)
from builder import Builder, Limits
from floats import FLOATS
from neighbours import MAKERS, use
from pairs import pair
from program import SPECIALS, Program, expected
from values import Invalid, Type

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 19, 31, 32, 33, 64, 65]
LARGE = [127, 128, 129, 257, 784, 1000, 1031, 4096, 8193, 16384, 17001]


class Kind(NamedTuple):
    """A kind of programs: the number that goes into seeds, and limits."""

    number: int
    depth: int
    ops: int


# views: memrefs with strides; special: NaN, infinities, subnormal and huge numbers; chains: ops whose data are a
# per-channel result of another.
PROGRAM_KINDS = {
    "programs": Kind(1, 3, 14),
    "views": Kind(2, 1, 4),
    "special": Kind(3, 1, 5),
    "chains": Kind(4, 1, 8),
}


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
    builder = Builder(random, limits, MAKERS)
    if kind == "special":
        builder.special = builder.pick(list(SPECIALS))
    shape = random_shape(builder, limits.elements)
    results: List[int] = []

    def grown(numbers: List[int], action) -> List[int]:
        """`numbers` and those of the values that a function adds."""
        numbers, new = builder.after(numbers, action)
        return numbers + new

    depth = builder.pick([0, 1, 2, limits.depth])
    for _ in range(builder.pick([1, 1, 1, 2])):
        first = builder.pick([builder.any_op, builder.any_op, partial(pair, builder)])
        results = grown(results, lambda: first(shape, depth))
    if kind == "chains":
        for _ in range(builder.pick([1, 1, 2])):
            value = builder.pick([r for r in results if builder.types[r].rank and builder.types[r].element in FLOATS])
            results = grown(results, lambda: builder.any_op(builder.types[value].shape, 1, value,
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
