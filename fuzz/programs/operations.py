"""The kinds of operations beside gradients: types, values, text."""

from typing import Dict, List, Sequence

import numpy as np

import known
import scalars
from bounded import SLACK, Bounded, extremum
from floats import FLOATS, Real
from kinds import KINDS, Kind, require
from values import Op, Type, static
from writer import Named, affine_map, identity, iterators


class Map(Kind):
    """Element-wise, with operands that may be permuted or broadcast. attrs: style (arith, generic, map, named),
    maps (for each operand, the loop of each of its dims), steps, outs (numbers of inputs or steps), flags."""

    def loops(self, op: Op, types: Sequence[Type]) -> Type:
        found: Dict[int, tuple] = {}
        for loops, type in zip(op.attrs["maps"], types):
            require(len(loops) == type.rank, "rank of an operand")
            for loop, size, unknown in zip(loops, type.shape, type.dynamic):
                before = found.setdefault(loop, (size, unknown))
                require(before[0] == size, "sizes of operands")
        require(sorted(found) == list(range(len(found))), "a loop without operand")
        return Type(tuple(found[i][0] for i in range(len(found))), "", tuple(found[i][1] for i in range(len(found))))

    def infer(self, op, types):
        elements = scalars.infer(op.attrs["steps"], [t.element for t in types])
        loops = self.loops(op, types)
        if op.attrs["style"] != "generic":
            require(all(m == list(range(loops.rank)) for m in op.attrs["maps"]), "maps of the identity")
        if op.attrs["style"] == "map":
            require(len(op.attrs["outs"]) == 1, "one result of linalg.map")
        return [loops.of(elements[out]) for out in op.attrs["outs"]]

    def evaluate(self, op, types, values):
        loops = self.loops(op, types)
        inputs = []
        for numbers, value in zip(op.attrs["maps"], values):
            def spread(array, numbers=numbers):
                order = np.argsort(numbers) if numbers else []
                shape = [loops.shape[i] if i in numbers else 1 for i in range(loops.rank)]
                return np.broadcast_to(array.transpose(order).reshape(shape), loops.shape)
            inputs.append(value.moved(spread))
        elements = scalars.infer(op.attrs["steps"], [t.element for t in types])
        results = scalars.evaluate(op.attrs["steps"], inputs, elements, op.attrs.get("flags", ""))
        return [results[out].moved(lambda a: np.broadcast_to(a, loops.shape)) for out in op.attrs["outs"]]

    def write(self, writer, op, operands, results):
        steps, outs, flags = op.attrs["steps"], op.attrs["outs"], op.attrs.get("flags", "")
        elements = scalars.infer(steps, [t.element for _, t in operands])
        loops = self.loops(op, [t for _, t in operands])
        if op.attrs["style"] == "arith":
            inputs = [writer.cast(o, loops.of(o[1].element)) for o in operands]

            def constant(value, element):
                if not any(loops.dynamic):
                    return writer.define(f"arith.constant dense<{value:e}> : {loops.of(element)}")
                sizes = [writer.index(loops.shape[i], operands, i) for i, u in enumerate(loops.dynamic) if u]
                scalar = writer.scalar(value, element)
                return writer.define(f"tensor.splat {scalar}[{', '.join(sizes)}] : {loops.of(element)}")
            names = scalars.write(writer, steps, inputs, elements, lambda e: str(loops.of(e)), constant, flags)
            return [names[out] for out in outs]
        if op.attrs["style"] == "map":
            operands = [(writer.cast(o, loops.of(o[1].element)), loops.of(o[1].element)) for o in operands]
        inits = [writer.empty(type, self.sources(op, operands, loops)) for type in results]
        ins = f"ins({', '.join(n for n, _ in operands)} : {', '.join(str(t) for _, t in operands)})"
        return self.write_region(writer, op, operands, results, inits, ins, elements, loops)

    def sources(self, op, operands, loops) -> List[Named]:
        """The operands sorted: those with all loops as dims first."""
        return sorted(operands, key=lambda o: o[1].rank != loops.rank)

    def write_region(self, writer, op, operands, results, inits, ins, elements, loops):
        steps, outs, flags = op.attrs["steps"], op.attrs["outs"], op.attrs.get("flags", "")
        inputs = [f"%in{writer.counter}_{i}" for i in range(len(operands))]
        types = ", ".join(map(str, results))
        names = [f"%out{writer.counter}_{i}" for i in range(len(inits))]
        result = writer.fresh()
        arguments = [f"{n}: {t.element}" for n, (_, t) in zip(inputs, operands)]
        if op.attrs["style"] == "map":
            writer.line(f"{result} = linalg.map {ins} outs({inits[0]} : {results[0]})")
            writer.line(f"({', '.join(arguments)}, {names[0]}: {results[0].element}) {{")
        else:
            maps = [affine_map(loops.rank, m) for m in op.attrs["maps"]] + [identity(loops.rank)] * len(results)
            multiple = f":{len(results)}" if len(results) > 1 else ""
            writer.line(f"{result}{multiple} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
                        f"iterator_types = {iterators(['parallel'] * loops.rank)}}} {ins} "
                        f"outs({', '.join(inits)} : {types}) {{")
            arguments += [f"{n}: {t.element}" for n, t in zip(names, results)]
            writer.line(f"^bb0({', '.join(arguments)}):")
        values = scalars.write(writer, steps, inputs, elements, str, writer.scalar, flags)
        yielded = f"linalg.yield {', '.join(values[o] for o in outs)} : {', '.join(t.element for t in results)}"
        writer.line(f"{yielded}\n}}" + ("" if op.attrs["style"] == "map" else f" -> {self.group(results)}"))
        return [result] if len(results) == 1 else [f"{result}#{i}" for i in range(len(results))]

    def group(self, results):
        listed = ", ".join(map(str, results))
        return listed if len(results) == 1 else f"({listed})"


class Reduce(Kind):
    """A sum or an extremum over dims. attrs: style (generic, linalg), dims, order (the loop of each dim of the
    operand), combine, reassoc, element (of the result), init."""

    def infer(self, op, types):
        type, element = types[0], op.attrs["element"]
        require(all(d < type.rank for d in op.attrs["dims"]), "dims of a reduction")
        require(type.element in FLOATS and FLOATS[element].bits >= FLOATS[type.element].bits, "types of a reduction")
        require(element == type.element or FLOATS[element].bits > FLOATS[type.element].bits, "types of a reduction")
        require(op.attrs["style"] == "generic" or op.attrs["order"] == list(range(type.rank)), "order of loops")
        return [type.at(self.kept(op, type)).of(element)]

    def kept(self, op, type) -> List[int]:
        """The operand's dims that remain, in the order of the loops."""
        require(sorted(op.attrs["order"]) == list(range(type.rank)), "order of loops")
        by_loop = sorted(range(type.rank), key=lambda d: op.attrs["order"][d])
        return [d for d in by_loop if d not in op.attrs["dims"]]

    def evaluate(self, op, types, values):
        dims, element = tuple(op.attrs["dims"]), op.attrs["element"]
        kept = self.kept(op, types[0])
        order = [sorted(kept).index(d) for d in kept]
        init = Bounded(np.full([types[0].shape[d] for d in sorted(kept)], op.attrs["init"], dtype=Real))
        if op.attrs["combine"] != "addf":
            function = np.maximum if op.attrs["combine"] == "maximumf" else np.minimum
            value = values[0]
            if value.value.size:
                reduced = Bounded(function.reduce(value.value, axis=dims), value.error.max(axis=dims))
                init = extremum(function, init, reduced)
            return [init.moved(lambda a: a.transpose(order))]
        count = int(np.prod([types[0].shape[d] for d in dims]))
        total = values[0].sum(dims) + init
        kind = FLOATS[element]
        sizes = np.abs(init.value) + values[0].magnitude().sum(axis=dims)
        relative = (count + 1) * kind.roundoff * (1 + 2 * count * kind.roundoff)
        error = total.error + SLACK * relative * sizes
        # Sums that pass the range on the way may be infinite.
        error = np.where(np.isfinite(total.value) & (sizes >= kind.largest / 4), Real(np.inf), error)
        return [known.flushed(Bounded(total.value, error), element).moved(lambda a: a.transpose(order))]

    def write(self, writer, op, operands, results):
        (name, type), result = operands[0], results[0]
        init = writer.filled(result, op.attrs["init"], operands, self.kept(op, type))
        a, b, x = (f"%{n}{writer.counter}" for n in ("in", "acc", "wide"))
        defined = writer.fresh()
        dims, order = op.attrs["dims"], op.attrs["order"]
        if op.attrs["style"] == "linalg":
            writer.line(f"{defined} = linalg.reduce ins({name} : {type}) outs({init} : {result}) "
                        f"dimensions = [{', '.join(map(str, sorted(dims)))}]\n  ({a}: {type.element}, "
                        f"{b}: {result.element}) {{")
        else:
            loops = [affine_map(type.rank, order), affine_map(type.rank, [order[d] for d in self.kept(op, type)])]
            kinds = ["reduction" if order.index(i) in dims else "parallel" for i in range(type.rank)]
            writer.line(f"{defined} = linalg.generic {{indexing_maps = [{', '.join(loops)}], "
                        f"iterator_types = {iterators(kinds)}}} ins({name} : {type}) outs({init} : {result}) {{\n"
                        f"^bb0({a}: {type.element}, {b}: {result.element}):")
        if type.element != result.element:
            writer.line(f"{x} = arith.extf {a} : {type.element} to {result.element}")
            a = x
        flags = " fastmath<reassoc>" if op.attrs["reassoc"] else ""
        writer.line(f"{x}_sum = arith.{op.attrs['combine']} {a}, {b}{flags} : {result.element}\n"
                    f"linalg.yield {x}_sum : {result.element}\n}}"
                    + ("" if op.attrs["style"] == "linalg" else f" -> {result}"))
        return [defined]


class Constant(Kind):
    """attrs: shape, element, value."""

    def infer(self, op, types):
        return [static(op.attrs["shape"], op.attrs["element"])]

    def evaluate(self, op, types, values):
        return [Bounded(np.full(op.attrs["shape"], op.attrs["value"], dtype=Real))]

    def write(self, writer, op, operands, results):
        return [writer.define(f"arith.constant dense<{op.attrs['value']:e}> : {results[0]}")]


class For(Kind):
    """scf.for. attrs: iters (number of iter_args), trips."""

    def infer(self, op, types):
        count = op.attrs["iters"]
        inner = op.body.types(types)
        for number, type in zip(op.body.returns, types[:count]):
            require((inner[number].shape, inner[number].element) == (type.shape, type.element), "types of iter_args")
        return list(types[:count])

    def evaluate(self, op, types, values):
        count, values = op.attrs["iters"], list(values)
        for _ in range(op.attrs["trips"]):
            inner = op.body.evaluate(values, types)
            values[:count] = [inner[r] for r in op.body.returns]
        return values[:count]

    def write(self, writer, op, operands, results):
        count = op.attrs["iters"]
        low, step = writer.constant_index(0), writer.constant_index(1)
        high = writer.index(op.attrs["trips"], operands)
        names = [f"%it{writer.counter}_{i}" for i in range(count)]
        defined = writer.fresh()
        multiple = f":{count}" if count > 1 else ""
        listed = ", ".join(f"{n} = {o}" for n, (o, _) in zip(names, operands))
        types = ", ".join(str(t) for t in results)
        writer.line(f"{defined}{multiple} = scf.for %i{writer.counter} = {low} to {high} step {step} "
                    f"iter_args({listed}) -> ({types}) {{")
        inner = [*zip(names, results), *operands[count:]]
        yielded = [writer.cast(value, type) for value, type in zip(writer.body(op.body, inner), results)]
        writer.line(f"scf.yield {', '.join(yielded)} : {types}\n}}")
        return [defined] if count == 1 else [f"{defined}#{i}" for i in range(count)]


class If(Kind):
    """scf.if; its else branch yields an operand. attrs: otherwise (its number), taken, by (deciding operand)."""

    def infer(self, op, types):
        inner = op.body.types(types)
        type = types[op.attrs["otherwise"]]
        result = inner[op.body.returns[0]]
        require((result.shape, result.element) == (type.shape, type.element), "types of branches")
        require(types[op.attrs["by"]].rank > 0, "a size that decides")
        return [type]

    def evaluate(self, op, types, values):
        if op.attrs["taken"]:
            return [op.body.evaluate(values, types)[op.body.returns[0]]]
        return [values[op.attrs["otherwise"]]]

    def write(self, writer, op, operands, results):
        source = operands[op.attrs["by"]]
        size = writer.dim(source, 0)
        limit = writer.constant_index(source[1].shape[0])
        condition = writer.define(f"arith.cmpi {'eq' if op.attrs['taken'] else 'ne'}, {size}, {limit} : index")
        defined = writer.fresh()
        writer.line(f"{defined} = scf.if {condition} -> ({results[0]}) {{")
        value = writer.cast(writer.body(op.body, operands)[0], results[0])
        writer.line(f"scf.yield {value} : {results[0]}\n}} else {{")
        other = writer.cast(operands[op.attrs["otherwise"]], results[0])
        writer.line(f"scf.yield {other} : {results[0]}\n}}")
        return [defined]


class Call(Kind):
    """A private function."""

    def infer(self, op, types):
        inner = op.body.types(types)
        return [inner[r] for r in op.body.returns]

    def evaluate(self, op, types, values):
        inner = op.body.evaluate(values, types)
        return [inner[r] for r in op.body.returns]

    def write(self, writer, op, operands, results):
        name = f"{writer.name}_callee{len(writer.functions)}_{writer.counter}"
        types = [t for _, t in operands]
        writer.function(name, op.body, types, "private ")
        defined = writer.fresh()
        multiple = f":{len(results)}" if len(results) > 1 else ""
        writer.line(f"{defined}{multiple} = func.call @{name}({', '.join(n for n, _ in operands)}) : "
                    f"({', '.join(map(str, types))}) -> ({', '.join(map(str, results))})")
        return [defined] if len(results) == 1 else [f"{defined}#{i}" for i in range(len(results))]


KINDS.update({"map": Map(), "reduce": Reduce(), "constant": Constant(), "for": For(), "if": If(), "call": Call()})
