"""Reduces a failing program as long as it fails in the same way."""

import time
from typing import Callable, Iterator, List

from program import Program, expected
from values import Argument, Invalid, Op, Type
from writer import write


def smaller(program: Program) -> Iterator[Program]:
    """Programs reduced in one place, the largest reductions first."""
    for index in range(len(program.returns)):
        if len(program.returns) > 1:
            p = program.copy()
            del p.returns[index]
            if p.result_layouts:
                del p.result_layouts[index]
            yield p
    if program.form == "memref":
        p = program.copy()
        p.form, p.result_layouts = "tensor", []
        for argument in p.arguments:
            argument.layout = None
        yield p
    if program.joined >= 0:
        p = program.copy()
        p.joined = -1
        yield p
    yield from without_ops(program)
    yield from with_smaller_sizes(program)
    yield from with_plain_types(program)
    yield from with_fewer_attributes(program)


def without_ops(program: Program) -> Iterator[Program]:
    """Replaces an operation's result by an argument or by one of its operands."""
    types = program.types()
    ranges = list(program.result_ranges())
    for place in reversed(range(len(ranges))):
        op, results = ranges[place]
        for operand in dict.fromkeys(op.operands):
            if len(results) == 1 and types[operand].shape == types[results[0]].shape \
                    and types[operand].element == types[results[0]].element:
                yield replaced(program, {results[0]: operand})
        yield with_arguments(program, place, types)
        if op.body is not None:
            for body in smaller_bodies(op.body):
                p = program.copy()
                p.ops[place].body = body
                yield p


def smaller_bodies(body: Program) -> Iterator[Program]:
    types = body.types()
    for op, results in body.result_ranges():
        for operand in op.operands:
            for result in results:
                if types[operand].shape == types[result].shape and types[operand].element == types[result].element:
                    p = body.copy()
                    for other in p.ops:
                        other.operands = [operand if o == result else o for o in other.operands]
                    p.returns = [operand if r == result else r for r in p.returns]
                    yield p


def replaced(program: Program, by: dict) -> Program:
    p = program.copy()
    for op in p.ops:
        op.operands = [by.get(o, o) for o in op.operands]
    p.returns = [by.get(r, r) for r in p.returns]
    return p


def with_arguments(program: Program, place: int, types: List[Type]) -> Program:
    """The program without the operation at `place`; its results become arguments."""
    results = list(program.result_ranges())[place][1]
    old, new = len(program.arguments), len(results)
    number = {}
    for value in range(len(types)):
        if value < old:
            number[value] = value
        elif value in results:
            number[value] = old + value - results[0]
        elif value < results[0]:
            number[value] = value + new
        else:
            number[value] = value
    p = program.copy()
    for index, result in enumerate(results):
        role = {"i1": "mask", "i64": "count"}.get(types[result].element, "plain")
        used = [op.attrs["names"][op.operands.index(result)] for op in program.ops
                if "names" in op.attrs and result in op.operands]
        if "variance" in used or "inv_std" in used:
            role = "positive"
        layout = None
        p.arguments.append(Argument(types[result], role, 77 + index + place, "", layout, (0,)))
    del p.ops[place]
    for op in p.ops:
        op.operands = [number[o] for o in op.operands]
    p.returns = [number[r] for r in p.returns]
    return p


def with_smaller_sizes(program: Program) -> Iterator[Program]:
    """Reduces all dims of arguments that have the same size, and all dependent dims."""
    if program.form == "memref":
        return
    sizes = sorted({s for a in program.arguments for s in a.type.shape if s > 1}, reverse=True)
    for size in sizes:
        for less in dict.fromkeys([1, 2, 3, size // 2, size - 1]):
            if 0 < less < size:
                p = program.copy()
                resize(p, size, less)
                yield p


def resize(program: Program, size: int, less: int) -> None:
    def changed(shape):
        return tuple(less if s == size else s for s in shape)

    for argument in program.arguments:
        argument.type = argument.type._replace(shape=changed(argument.type.shape))
    for op in program.ops:
        for name in ("sizes", "shape"):
            if name in op.attrs:
                op.attrs[name] = list(changed(op.attrs[name]))
        if op.body is not None:
            resize(op.body, size, less)


def with_plain_types(program: Program) -> Iterator[Program]:
    if any(any(a.type.dynamic) for a in program.arguments):
        p = program.copy()
        for a in p.arguments:
            a.type = a.type._replace(dynamic=(False,) * a.type.rank)
        yield p
        for index, argument in enumerate(program.arguments):
            for dim, unknown in enumerate(argument.type.dynamic):
                if unknown:
                    p = program.copy()
                    dynamic = list(argument.type.dynamic)
                    dynamic[dim] = False
                    p.arguments[index].type = argument.type._replace(dynamic=tuple(dynamic))
                    yield p
    elements = {a.type.element for a in program.arguments} - {"i1", "i64", "f32"}
    for element in sorted(elements):
        p = program.copy()
        to_f32(p, element)
        yield p
    for index, argument in enumerate(program.arguments):
        if argument.layout and argument.layout["says"] != "identity":
            p = program.copy()
            p.arguments[index].layout = None
            yield p
        if argument.special:
            p = program.copy()
            p.arguments[index].special = ""
            yield p
    for index, layout in enumerate(program.result_layouts):
        if layout:
            p = program.copy()
            p.result_layouts[index] = None
            yield p


def to_f32(program: Program, element: str) -> None:
    def change(value):
        if isinstance(value, list):
            return [change(v) for v in value]
        return "f32" if value == element else value

    for argument in program.arguments:
        argument.type = argument.type.of(change(argument.type.element))
    for op in program.ops:
        op.attrs = {name: change(value) for name, value in op.attrs.items()}
        if op.body is not None:
            to_f32(op.body, element)


def with_fewer_attributes(program: Program) -> Iterator[Program]:
    for place, op in enumerate(program.ops):
        for name in ("mask", "scale", "offset", "shift", "count", "sums"):
            names = op.attrs.get("names", [])
            if name in names and not (name == "sums" and "count" in names):
                p = program.copy()
                index = names.index(name)
                del p.ops[place].operands[index]
                del p.ops[place].attrs["names"][index]
                yield p
        for name, plain in (("epsilon", 0.0), ("flags", ""), ("statistics", "batch"), ("reassoc", False),
                            ("style", "generic")):
            if name in op.attrs and op.attrs[name] != plain:
                p = program.copy()
                p.ops[place].attrs[name] = plain
                yield p
        if op.kind == "map":
            yield from with_fewer_steps(program, place, op)
        elements = op.attrs.get("elements")
        if elements and elements != ["f32"] * len(elements):
            p = program.copy()
            p.ops[place].attrs["elements"] = ["f32"] * len(elements)
            yield p


def with_fewer_steps(program: Program, place: int, op: Op) -> Iterator[Program]:
    """Replaces the results of a map by those of earlier steps."""
    inputs = len(op.operands)
    for step in range(len(op.attrs["steps"])):
        p = program.copy()
        attrs = p.ops[place].attrs
        attrs["steps"] = attrs["steps"][:step + 1]
        attrs["outs"] = [inputs + step]
        if len(op.attrs["outs"]) == 1 and step + 1 < len(op.attrs["steps"]):
            yield p


def size_of(program: Program) -> tuple:
    text = write(program)
    return (len(program.ops), sum(a.type.count for a in program.arguments), len(text))


def reduce(program: Program, fails: Callable[[Program], bool], seconds: float) -> Program:
    """The smallest program that is found in time and for which `fails` holds."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in smaller(program):
            if time.monotonic() > end:
                break
            try:
                candidate = candidate.without_dead()
                expected(candidate)
                if size_of(candidate) >= size_of(program) and candidate.to_json() == program.to_json():
                    continue
            except (Invalid, ValueError, IndexError, KeyError, RuntimeError):
                continue
            if fails(candidate):
                program, progress = candidate, True
                break
    return program
