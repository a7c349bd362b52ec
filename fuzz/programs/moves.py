"""The kinds of operations that only move elements: slices, reshapes, transposes, casts."""

import math
from typing import List, Sequence

import numpy as np

from bounded import Bounded
from floats import Real
from kinds import KINDS, Kind, require
from values import Op, Type


def listed(values: Sequence) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


class Move(Kind):
    """An operation on one operand, by its numpy function."""

    def move(self, op: Op, type: Type, array: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def evaluate(self, op, types, values):
        return [values[0].moved(lambda array: self.move(op, types[0], array))]


class Transpose(Move):
    """attrs: order, style (linalg, generic)."""

    def infer(self, op, types):
        require(sorted(op.attrs["order"]) == list(range(types[0].rank)), "a permutation")
        # The verifier of linalg.transpose crashes on rank 0, in mlir-opt as well.
        require(types[0].rank > 0, "rank")
        return [types[0].at(op.attrs["order"])]

    def move(self, op, type, array):
        return array.transpose(op.attrs["order"])

    def write(self, writer, op, operands, results):
        (name, type), order = operands[0], op.attrs["order"]
        init = writer.empty(results[0], operands, order)
        return [writer.define(f"linalg.transpose ins({name} : {type}) outs({init} : {results[0]}) "
                              f"permutation = {listed(order)}")]


class Broadcast(Move):
    """attrs: dims (new ones), sizes."""

    def infer(self, op, types):
        dims, sizes = op.attrs["dims"], op.attrs["sizes"]
        rank = types[0].rank + len(dims)
        require(all(d < rank for d in dims) and len(set(dims)) == len(dims) == len(sizes), "dims of a broadcast")
        old = iter(zip(types[0].shape, types[0].dynamic))
        new = dict(zip(dims, sizes))
        pairs = [(new[d], False) if d in new else next(old) for d in range(rank)]
        return [Type(tuple(s for s, _ in pairs), types[0].element, tuple(u for _, u in pairs))]

    def move(self, op, type, array):
        shape = self.infer(op, [type])[0].shape
        return np.broadcast_to(np.expand_dims(array, tuple(op.attrs["dims"])), shape)

    def write(self, writer, op, operands, results):
        (name, type), dims = operands[0], op.attrs["dims"]
        kept = iter(range(type.rank))
        places = [0 if d in dims else next(kept) for d in range(results[0].rank)]
        init = writer.empty(results[0], operands, places)
        return [writer.define(f"linalg.broadcast ins({name} : {type}) outs({init} : {results[0]}) "
                              f"dimensions = {listed(sorted(dims))}")]


class Slice(Move):
    """attrs: offsets, sizes, strides, dropped (dims of size 1 that the result lacks), unknown (dynamic sizes of
    the type), moving (offsets that are values)."""

    def infer(self, op, types):
        a, type = op.attrs, types[0]
        require(len(a["offsets"]) == type.rank, "rank of a slice")
        for offset, size, stride, limit in zip(a["offsets"], a["sizes"], a["strides"], type.shape):
            require(0 <= offset < limit and offset + (size - 1) * stride < limit, "a slice within")
        require(all(a["sizes"][d] == 1 and not a["unknown"][d] for d in a["dropped"]), "dropped dims of size 1")
        kept = [d for d in range(type.rank) if d not in a["dropped"]]
        return [Type(tuple(a["sizes"][d] for d in kept), type.element, tuple(bool(a["unknown"][d]) for d in kept))]

    def move(self, op, type, array):
        a = op.attrs
        index = tuple(slice(o, o + s * n, n) if s else slice(0, 0)
                      for o, s, n in zip(a["offsets"], a["sizes"], a["strides"]))
        return array[index].reshape(self.infer(op, [type])[0].shape)

    def write(self, writer, op, operands, results):
        (name, type), a = operands[0], op.attrs
        offsets = [writer.index(o, operands, d) if a["moving"][d] else o for d, o in enumerate(a["offsets"])]
        sizes = [writer.index(s, operands, d) if a["unknown"][d] else s for d, s in enumerate(a["sizes"])]
        return [writer.define(f"tensor.extract_slice {name}{listed(offsets)} {listed(sizes)} {listed(a['strides'])} "
                              f": {type} to {results[0]}")]


class Insert(Kind):
    """A slice into another tensor. attrs: offsets, strides, added (dims of size 1 that the source lacks)."""

    def sizes(self, op, source: Type, rank: int) -> List[int]:
        shape = iter(source.shape)
        require(source.rank + len(op.attrs["added"]) == rank, "ranks of an insertion")
        return [1 if d in op.attrs["added"] else next(shape) for d in range(rank)]

    def infer(self, op, types):
        source, into = types
        require(source.element == into.element, "element types of an insertion")
        sizes = self.sizes(op, source, into.rank)
        for offset, size, stride, limit in zip(op.attrs["offsets"], sizes, op.attrs["strides"], into.shape):
            require(offset < limit and offset + (size - 1) * stride < limit, "an insertion within")
        return [into]

    def evaluate(self, op, types, values):
        sizes = self.sizes(op, types[0], types[1].rank)
        index = tuple(slice(o, o + s * n, n) if s else slice(0, 0)
                      for o, s, n in zip(op.attrs["offsets"], sizes, op.attrs["strides"]))
        value, error = values[1].value.copy(), values[1].error.copy()
        value[index], error[index] = values[0].value.reshape(sizes), values[0].error.reshape(sizes)
        return [Bounded(value, error)]

    def write(self, writer, op, operands, results):
        (name, source), (into, type) = operands
        unknown = iter(source.dynamic)
        unknown = [False if d in op.attrs["added"] else next(unknown) for d in range(type.rank)]
        sizes = [writer.index(s, [operands[0]], sum(1 for e in range(d) if e not in op.attrs["added"])) if u else s
                 for d, (s, u) in enumerate(zip(self.sizes(op, source, type.rank), unknown))]
        return [writer.define(f"tensor.insert_slice {name} into {into}{listed(op.attrs['offsets'])} {listed(sizes)} "
                              f"{listed(op.attrs['strides'])} : {source} into {type}")]


class Pad(Kind):
    """attrs: low, high, value, unknown (of the result)."""

    def infer(self, op, types):
        a, type = op.attrs, types[0]
        require(len(a["low"]) == type.rank, "rank of a padding")
        shape = tuple(low + size + high for low, size, high in zip(a["low"], type.shape, a["high"]))
        return [Type(shape, type.element, type.dynamic)]

    def evaluate(self, op, types, values):
        widths = list(zip(op.attrs["low"], op.attrs["high"]))
        value = np.pad(values[0].value, widths, constant_values=Real(op.attrs["value"])) if widths else values[0].value
        return [Bounded(value, np.pad(values[0].error, widths) if widths else values[0].error)]

    def write(self, writer, op, operands, results):
        (name, type), a = operands[0], op.attrs
        value = writer.scalar(a["value"], type.element)
        defined = writer.fresh()
        indices = ", ".join(f"%p{writer.counter}_{d}: index" for d in range(type.rank))
        writer.line(f"{defined} = tensor.pad {name} low{listed(a['low'])} high{listed(a['high'])} {{\n"
                    f"^bb0({indices}):\n  tensor.yield {value} : {type.element}\n}} : {type} to {results[0]}")
        return [defined]


def group_sizes(groups: Sequence[Sequence[int]], shape: Sequence[int]) -> List[int]:
    return [math.prod(shape[d] for d in group) for group in groups]


class Expand(Move):
    """attrs: groups, shape, unknown."""

    def infer(self, op, types):
        a, type = op.attrs, types[0]
        require(len(a["groups"]) == type.rank and [d for g in a["groups"] for d in g] == list(range(len(a["shape"]))),
                "groups of a reshape")
        require(group_sizes(a["groups"], a["shape"]) == list(type.shape), "sizes of a reshape")
        unknown = [bool(u) for u in a["unknown"]]
        for group, is_dynamic in zip(a["groups"], type.dynamic):
            if not is_dynamic:
                for d in group:
                    unknown[d] = False
            elif not any(unknown[d] for d in group):
                unknown[group[0]] = True
        return [Type(tuple(a["shape"]), type.element, tuple(unknown))]

    def move(self, op, type, array):
        return array.reshape(op.attrs["shape"])

    def write(self, writer, op, operands, results):
        (name, type), result = operands[0], results[0]
        dims = {d: i for i, group in enumerate(op.attrs["groups"]) for d in group}
        shape = [writer.index(s, operands, dims[d]) if result.dynamic[d] else s for d, s in enumerate(result.shape)]
        return [writer.define(f"tensor.expand_shape {name} {listed(op.attrs['groups'])} output_shape {listed(shape)} "
                              f": {type} into {result}")]


class Collapse(Move):
    """attrs: groups."""

    def infer(self, op, types):
        groups, type = op.attrs["groups"], types[0]
        require([d for g in groups for d in g] == list(range(type.rank)), "groups of a reshape")
        unknown = tuple(any(type.dynamic[d] for d in group) for group in groups)
        return [Type(tuple(group_sizes(groups, type.shape)), type.element, unknown)]

    def move(self, op, type, array):
        return array.reshape(group_sizes(op.attrs["groups"], type.shape))

    def write(self, writer, op, operands, results):
        (name, type) = operands[0]
        return [writer.define(f"tensor.collapse_shape {name} {listed(op.attrs['groups'])} : {type} into {results[0]}")]


class Concat(Kind):
    """attrs: dim."""

    def infer(self, op, types):
        dim, first = op.attrs["dim"], types[0]
        require(dim < first.rank, "dim of a concatenation")
        for type in types:
            require(type.element == first.element and type.rank == first.rank, "types of a concatenation")
            require(all(a == b for d, (a, b) in enumerate(zip(type.shape, first.shape)) if d != dim), "sizes")
        shape, unknown = list(first.shape), [any(t.dynamic[d] for t in types) for d in range(first.rank)]
        # As MLIR infers it: a size that is static in one operand is static.
        for d in range(first.rank):
            if d != dim:
                unknown[d] = all(t.dynamic[d] for t in types)
        shape[dim] = sum(type.shape[dim] for type in types)
        return [Type(tuple(shape), first.element, tuple(unknown))]

    def evaluate(self, op, types, values):
        return [Bounded(np.concatenate([v.value for v in values], axis=op.attrs["dim"]),
                        np.concatenate([v.error for v in values], axis=op.attrs["dim"]))]

    def write(self, writer, op, operands, results):
        types = ", ".join(str(t) for _, t in operands)
        return [writer.define(f"tensor.concat dim({op.attrs['dim']}) {', '.join(n for n, _ in operands)} : "
                              f"({types}) -> {results[0]}")]


class Cast(Move):
    """attrs: unknown."""

    def infer(self, op, types):
        require(len(op.attrs["unknown"]) == types[0].rank, "rank of a cast")
        return [types[0]._replace(dynamic=tuple(bool(u) for u in op.attrs["unknown"]))]

    def move(self, op, type, array):
        return array

    def write(self, writer, op, operands, results):
        return [writer.cast(operands[0], results[0])]


KINDS.update({"transpose": Transpose(), "broadcast": Broadcast(), "slice": Slice(), "insert": Insert(), "pad": Pad(),
              "expand": Expand(), "collapse": Collapse(), "concat": Concat(), "cast": Cast()})
