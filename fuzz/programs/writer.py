"""The text of programs: MLIR on tensors, or on memrefs around them."""

import math
from typing import Dict, List, Optional, Sequence, Tuple

from kinds import KINDS
from program import Program
from values import Type

Named = Tuple[str, Type]  # an SSA value and its type


def identity(rank: int) -> str:
    dims = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({dims}) -> ({dims})>"


def affine_map(rank: int, results: Sequence[int]) -> str:
    return (f"affine_map<({', '.join(f'd{i}' for i in range(rank))}) -> "
            f"({', '.join(f'd{i}' for i in results)})>")


def iterators(kinds: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{kind}"' for kind in kinds) + "]"


def layout_text(layout: Dict) -> str:
    """The strides and offset of a memref type."""
    if layout["says"] == "identity":
        return ""
    if layout["says"] == "dynamic":
        return f", strided<[{', '.join('?' for _ in layout['strides'])}], offset: ?>"
    return f", strided<[{', '.join(map(str, layout['strides']))}], offset: {layout['offset']}>"


def memref(type: Type, layout: Optional[Dict]) -> str:
    return f"memref<{type.sizes()}{type.element}{layout_text(layout) if layout else ''}>"


class Writer:
    """Collects the text of a module."""

    def __init__(self):
        self.functions: List[str] = []
        self.lines: List[str] = []
        self.indent = "  "
        self.counter = 0

    def fresh(self) -> str:
        self.counter += 1
        return f"%{self.counter}"

    def line(self, text: str) -> None:
        self.lines += [self.indent + part for part in text.split("\n")]

    def define(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def constant_index(self, value: int) -> str:
        return self.define(f"arith.constant {value} : index")

    def scalar(self, value: float, element: str) -> str:
        return self.define(f"arith.constant {float(value):e} : {element}")

    def dim(self, source: Named, dim: int) -> str:
        return self.define(f"tensor.dim {source[0]}, {self.constant_index(dim)} : {source[1]}")

    def index(self, value: int, sources: Sequence[Named], dim: int = 0) -> str:
        """An index of this value, from a dynamic size if there is one."""
        for source in sources:
            for candidate in [dim] + list(range(source[1].rank)):
                if candidate < source[1].rank and source[1].dynamic[candidate]:
                    size = self.dim(source, candidate)
                    difference = value - source[1].shape[candidate]
                    if difference == 0:
                        return size
                    return self.define(f"arith.addi {size}, {self.constant_index(difference)} : index")
        return self.constant_index(value)

    def empty(self, type: Type, sources: Sequence[Named], dims: Optional[Sequence[int]] = None) -> str:
        """tensor.empty; dims[i] is the dim of the first source with size i."""
        sizes = [self.index(size, sources, dims[i] if dims else i)
                 for i, (size, unknown) in enumerate(zip(type.shape, type.dynamic)) if unknown]
        return self.define(f"tensor.empty({', '.join(sizes)}) : {type}")

    def filled(self, type: Type, value: float, sources: Sequence[Named], dims: Optional[Sequence[int]] = None) -> str:
        scalar = self.scalar(value, type.element)
        init = self.empty(type, sources, dims)
        return self.define(f"linalg.fill ins({scalar} : {type.element}) outs({init} : {type}) -> {type}")

    def cast(self, value: Named, to: Type) -> str:
        if str(value[1]) == str(to):
            return value[0]
        return self.define(f"tensor.cast {value[0]} : {value[1]} to {to}")

    def body(self, program: Program, values: Sequence[Named]) -> List[Named]:
        """Writes the operations of a program on these values; returns the results."""
        values = list(values)
        for op in program.ops:
            kind = KINDS[op.kind]
            operands = [values[o] for o in op.operands]
            types = kind.infer(op, [type for _, type in operands])
            values += list(zip(kind.write(self, op, operands, types), types))
        return [values[r] for r in program.returns]

    def function(self, name: str, program: Program, types: Sequence[Type], visibility: str = "") -> List[Type]:
        """Writes a function on tensors; returns the types of its results."""
        outer, self.lines, outer_indent, self.indent = self.lines, [], self.indent, "  "
        arguments = [(f"%a{i}", type) for i, type in enumerate(types)]
        results = self.body(program, arguments)
        listed = ", ".join(f"{n}: {t}" for n, t in arguments)
        result_types = ", ".join(str(t) for _, t in results)
        text = f"func.func {visibility}@{name}({listed}) -> ({result_types}) {{\n" + "\n".join(self.lines)
        text += f"\n  return {', '.join(n for n, _ in results)} : {result_types}\n}}\n"
        self.functions.append(text)
        self.lines, self.indent = outer, outer_indent
        return [type for _, type in results]

    def write_slice(self, value: str, type: Type, dim: int, place: int, count: int) -> None:
        """Writes a result to its slice of a shared memref."""
        whole = join(type, dim, count)
        strides = [math.prod(whole.shape[d + 1:]) for d in range(whole.rank)]
        offsets = [place if d == dim else 0 for d in range(whole.rank)]
        sizes = [1 if d == dim else n for d, n in enumerate(whole.shape)]
        kept = [s for d, s in enumerate(strides) if d != dim]
        target = f"memref<{type.sizes()}{type.element}, strided<{kept}, offset: {place * strides[dim]}>>"
        part = self.define(f"memref.subview %joined{offsets} {sizes} {[1] * whole.rank} : "
                           f"{memref(whole, None)} to {target}")
        self.line(f"bufferization.materialize_in_destination {value} in restrict writable {part} : "
                  f"({type}, {target}) -> ()")

    def memref_function(self, name: str, program: Program) -> None:
        """A function on memrefs; each result has another memref argument."""
        self.lines, self.indent = [], "  "
        listed, values = [], []
        for index, argument in enumerate(program.arguments):
            listed.append(f"%a{index}: {memref(argument.type, argument.layout)}")
            tensor = self.define(f"bufferization.to_tensor %a{index} restrict : "
                                 f"{memref(argument.type, argument.layout)} to {argument.type}")
            values.append((tensor, argument.type))
        joined = program.joined_results()
        for index, (value, type) in enumerate(self.body(program, values)):
            if index in joined:
                if index == joined[0]:
                    listed.append(f"%joined: {memref(join(type, program.joined, len(joined)), None)}")
                self.write_slice(value, type, program.joined, joined.index(index), len(joined))
                continue
            target = memref(type, program.result_layouts[index])
            listed.append(f"%r{index}: {target}")
            self.line(f"bufferization.materialize_in_destination {value} in restrict writable %r{index} : "
                      f"({type}, {target}) -> ()")
        body = "\n".join(self.lines)
        self.functions.append(f"func.func @{name}({', '.join(listed)}) {{\n{body}\n  return\n}}\n")


def join(type: Type, dim: int, count: int) -> Type:
    """The type of `count` tensors of this type, joined along a new dim."""
    return Type(type.shape[:dim] + (count,) + type.shape[dim:], type.element, type.dynamic + (False,))


def write(program: Program, name: str = "f") -> str:
    """The functions of a program; private ones are named after it."""
    writer = Writer()
    writer.name = name
    if program.form == "memref":
        writer.memref_function(name, program)
    else:
        writer.function(name, program, [a.type for a in program.arguments])
    return "\n".join(writer.functions)


def result_types(program: Program) -> List[Type]:
    types = program.types()
    return [types[r] for r in program.returns]
