"""Grids of shapes without expected values: --check on random data.

An entry means every combination of the values in it and its grid: shapes,
feature dims, memory layouts, flags (G: global statistics; C: a scale; R or A:
a fused ReLU, so a mask), epsilons and element types. Properties that only a
caller sees are dropped: in-place, strides, accumulation, the set of requested
gradients.
"""

import contextlib
import itertools
import math
import re
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from cases import SchemaError, element_types
from programs import (RESULTS, Failure, Gradient, Tools, bngrad_program,
                      tensor_type)

QUICK_ELEMENTS = 2_000_000
LONG_ELEMENTS = 64_000_000
DEFAULT_EPSILON = 1e-5
LARGE = threading.Lock()  # the reference takes gigabytes: one at a time
DEFAULT_SHAPE = [4, 3, 5, 2]  # of an entry with a type but no shape

Layout = Tuple[Tuple[int, ...], Tuple[int, ...]]  # shape, feature dims


class Mode(NamedTuple):
    statistics: str
    has_scale: bool
    has_mask: bool


class Problem(NamedTuple):
    layout: Layout
    mode: Mode
    epsilon: float
    elements: Tuple[str, str]  # of data and parameters

    def __str__(self) -> str:
        shape, dims = self.layout
        return " ".join(filter(None, (
            "x".join(map(str, shape)), f"feature_dims {list(dims)}",
            self.mode.statistics, "" if self.mode.has_scale else "no scale",
            "mask" if self.mode.has_mask else "", f"epsilon {self.epsilon}",
            "/".join(dict.fromkeys(self.elements)))))


def as_list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [value]


def read_shapes(entry: Dict[str, Any]) -> List[List[int]]:
    """One shape or a list of them; a letter is a size in the entry."""
    shape = entry.get("shape")
    if shape is None and ("dtype" in entry or "dtypes" in entry):
        return [DEFAULT_SHAPE]
    if not isinstance(shape, list):
        raise SchemaError(f"gives no shape in numbers, got {shape!r}")
    shapes = shape if shape and isinstance(shape[0], list) else [shape]
    resolved = [[entry.get(size) if isinstance(size, str) else size
                 for size in sizes] for sizes in shapes]
    for sizes in resolved:
        if not sizes or not all(isinstance(size, int) and size >= 0
                                for size in sizes):
            raise SchemaError(f"gives no shape in numbers, got {shape!r}")
    return resolved


def layouts_of(sizes: List[int], entry: Dict[str, Any],
               tags: List[str]) -> List[Layout]:
    """The shape of the op. If a layout is a memory format (channels_last,
    nhwc, nChw16c), sizes are those of N, C, ..., and it permutes or splits
    them; in capitals it names the sizes themselves."""
    shape, rank = tuple(sizes), len(sizes)
    if "reduce_axes" in entry:
        reduced = [dim % rank for dim in entry["reduce_axes"]]
        return [(shape, tuple(dim for dim in range(rank)
                              if dim not in reduced))]
    index = entry.get("feature_index")
    if index == "every axis":
        return [(shape, (dim,)) for dim in range(rank)]
    if index is not None:
        if not isinstance(index, int) or not -rank <= index < rank:
            raise SchemaError(f"expected feature_index to be a dim, "
                              f"got {index!r}")
        return [(shape, (index % rank,))]
    if rank == 1:
        return [(shape, (0,))]
    layout = str(entry.get("layout", ""))
    last = (shape[:1] + shape[2:] + shape[1:2], (rank - 1,))
    blocked = re.match(r"nC[dhw]*(\d+)c\b", layout)
    if blocked:
        block = int(blocked[1])
        return [(shape[:1] + (-(-shape[1] // block),) + shape[2:] + (block,),
                 (1, rank))]
    if re.match(r"channels_last|n[dhw]*c\b", layout):
        return [last]
    if re.match(r"N[DHWL]+C\b", layout):
        return [(shape, (rank - 1,))]
    return [last if tag == "axb" else (shape, (1,)) for tag in tags]


def modes_of(entry: Dict[str, Any], flags: List[str]) -> List[Mode]:
    if flags:
        return [Mode("global" if "G" in flag else "batch", "C" in flag,
                     "R" in flag or "A" in flag)
                for flag in ("" if flag == "none" else flag for flag in flags)]
    has_mask = "relu" in str(entry.get("layout", "")).lower()
    return [Mode("batch" if train else "global", True, has_mask)
            for train in as_list(entry.get("train", True))]


def elements_of(grid: Dict[str, Any], entry: Dict[str, Any],
                types: List[str]) -> List[Tuple[str, str]]:
    """Two types in one text: of data and of parameters."""
    texts = entry.get("dtypes") or as_list(entry.get("dtype") or [])
    tolerance = grid.get("tolerance")
    texts = texts or types or [
        key for key in (tolerance if isinstance(tolerance, dict) else [])
        if element_types(key)] or element_types(grid.get("what")) or ["f32"]
    named = [element_types(text) for text in texts]
    return list(dict.fromkeys((pair[0], pair[-1]) for pair in named if pair))


def problems_of(grid: Dict[str, Any],
                entry: Dict[str, Any]) -> List[List[Problem]]:
    """All runs for each layout of the entry."""
    # `flags {none,G,C}` and the like in the text on the grid.
    sets = {name: values.split(",") for name, values in
            re.findall(r"(\w+) \{([^{}]*)\}", str(grid.get("what")))}
    layouts = [layout for sizes in read_shapes(entry) for layout in
               layouts_of(sizes, entry, sets.get("tag", ["abx"]))]
    epsilons = [float(epsilon) for epsilon in as_list(
        entry.get("epsilon", grid.get("epsilon", DEFAULT_EPSILON)))]
    rest = list(itertools.product(modes_of(entry, sets.get("flags", [])),
                                  epsilons,
                                  elements_of(grid, entry, sets.get("dt", []))))
    return [[Problem(layout, *combination) for combination in rest]
            for layout in layouts]


def select(problems: List[List[Problem]], index: int,
           is_long: bool) -> List[Problem]:
    """2 per layout, 8 in a long test, or 1 of a large shape: evenly
    distributed, and different from entry to entry."""
    chosen = []
    for i, combinations in enumerate(problems):
        total = len(combinations)
        elements = math.prod(combinations[0].layout[0])
        if elements < QUICK_ELEMENTS:
            count = min(total, 8 if is_long else 2)
        else:
            count = 1 if is_long and elements <= LONG_ELEMENTS else 0
        chosen += [combinations[(index + i + k * total // count) % total]
                   for k in range(count)]
    return chosen


def ranges_of(grid: Dict[str, Any], entry: Dict[str, Any]) -> Dict[str, str]:
    """The range of the random values of an operand, if given."""
    if "random_value_mean" in entry:
        mean, variance = (float(entry[f"random_value_{name}"])
                          for name in ("mean", "var"))
        spread = math.sqrt(3 * variance)  # of a uniform distribution
        return {"input": f":{mean - spread}:{mean + spread}",
                "mean": f":{mean - spread / 8}:{mean + spread / 8}",
                "variance": f":{variance / 2}:{variance * 3 / 2}"}
    number = r"(-?[0-9.]+)"
    uniform = re.fullmatch(rf"uniform\({number}, *{number}\)",
                           str(grid.get("distribution")))
    return {"input": f":{uniform[1]}:{uniform[2]}"} if uniform else {}


def run_problem(problem: Problem, ranges: Dict[str, str], seed: int,
                tools: Tools) -> None:
    shape, dims = problem.layout
    data, parameters = problem.elements
    channel = tensor_type([shape[dim] for dim in dims], parameters)
    full = tensor_type(shape, data)
    operands = {"grad_output": full, "input": full}
    if problem.mode.has_scale:
        operands["scale"] = channel
    operands.update(mean=channel, variance=channel)
    if problem.mode.has_mask:
        operands["mask"] = tensor_type(shape, "i1")
    gradient = Gradient(operands, dict(zip(RESULTS, (full, channel, channel))),
                        RESULTS, dims, problem.epsilon, problem.mode.statistics)
    arguments = [f"random:{seed + i}{ranges.get(name, '')}"
                 for i, name in enumerate(operands)]
    try:
        tools.run(bngrad_program(gradient), arguments, ["-"] * len(RESULTS))
    except Failure as failure:
        raise Failure(f"{problem}: {failure}") from None


class Entry(NamedTuple):
    id: str
    problems: List[Problem]
    ranges: Dict[str, str]
    skipped: Optional[str]  # the reason why it cannot run


def read_entries(grid: Dict[str, Any], is_long: bool) -> Iterator[Entry]:
    """The entries of a grid that are small enough."""
    source = f"{grid.get('source_repo')}:{grid.get('source_path')}"
    for index, entry in enumerate(grid["cases"]):
        id = f"{source}[{index}]".replace(" ", "_")
        try:
            if not isinstance(entry, dict):
                raise SchemaError(f"expected an entry with names, got {entry}")
            problems = select(problems_of(grid, entry), index, is_long)
            if problems:
                yield Entry(id, problems, ranges_of(grid, entry), None)
        except SchemaError as error:
            yield Entry(id, [], {}, str(error))


def check_entry(entry: Entry, tools: Tools) -> None:
    for i, problem in enumerate(entry.problems):
        is_large = math.prod(problem.layout[0]) >= QUICK_ELEMENTS
        with LARGE if is_large else contextlib.nullcontext():
            run_problem(problem, entry.ranges, 1000 * i + 1, tools)
