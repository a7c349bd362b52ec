"""The programs of one configuration, and their results."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from configuration import Configuration
from floats import Array
from programs import Function, call

STATISTICS = {True: "batch", False: "global"}


class Tools(NamedTuple):
    runner: str
    opt: str


def features_attribute(features: Sequence[int]) -> str:
    return f"feature_dims = array<i64: {', '.join(map(str, features))}>"


class Runs:
    """Results of every program, by its name; `None` if it does not apply.

    gradient   the op
    other      with other_dy
    combined   with combined_dy
    permuted the dims in another order; its results in the original order
    statistic inv_std instead of variance, or the other way around doubled
    every element twice along `axis` sums of each part, the batch cut at `cuts`
    counts of each part parts the first result, joined from those of the parts
    split after --bngrad-split
    """

    def __init__(self, c: Configuration, tools: Tools, directory: Path):
        self.configuration, self.tools = c, tools
        random = c.random
        self.permutation = list(map(int, random.permutation(c.rank)))
        self.transposes_in_ir = bool(random.random_sample() < 0.5)
        axis = [dim for dim in c.reduced if c.shape[dim] != 1] or c.reduced
        self.axis: Optional[int] = int(random.choice(axis)) if axis else None
        self.results: Dict[str, Optional[List[np.ndarray]]] = {}
        self.directory = directory
        self.program = directory / "program.mlir"
        self.cut()
        self.execute()

    def cut(self) -> None:
        """Uneven parts; one of three is empty."""
        c, random = self.configuration, self.configuration.random
        self.cuts: List[int] = []
        if self.axis is not None:
            size = c.shape[self.axis]
            cut = int(random.randint(size + 1))
            self.cuts = [cut, cut] if random.random_sample() < 0.5 else [cut]

    def operands(self) -> Dict[str, Optional[Array]]:
        c = self.configuration
        statistic = ("inv_std", c.inv_std) if c.has_inv_std else (
            "variance", c.variance)
        return {"grad_output": c.dy, "input": c.x, "scale": c.scale,
                "mean": c.mean, statistic[0]: statistic[1], "mask": c.mask}

    def add_gradient(self, function: Function, operands: Dict[str, object],
                     features: Optional[Sequence[int]] = None,
                     shapes: Optional[Sequence] = None):
        c = self.configuration
        epsilon = c.epsilon if "variance" in operands and (
            not c.has_inv_std) else 0.0
        return function.op(
            "batch_norm_backward", operands,
            f"{features_attribute(features or c.features)}, "
            f"epsilon = {epsilon:e} : f64, "
            f"statistics = #bngrad.statistics<{STATISTICS[c.is_batch]}>",
            list(zip(c.kinds, shapes or c.result_shapes())))

    def execute(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        gradient = Function("gradient", self.configuration)
        gradient.returned = self.add_gradient(gradient, self.operands())
        variants, names = self.build_variants()
        reduce, elemt = self.build_reduce(), None
        # The arguments of `elemt` are the results of `reduce`.
        texts = [gradient.text(), variants.text()]
        texts += [reduce.text()] if reduce else []
        self.program.write_text("".join(texts))

        self.results["gradient"] = self.run(gradient)
        flat = self.run(variants)
        for i, name in enumerate(names):
            self.results[name] = flat[3 * i:3 * i + 3]
        if not self.transposes_in_ir:
            self.results["permuted"] = self.restore(self.results["permuted"])
        if reduce:
            flat = self.run(reduce)
            self.results["sums"], self.results["counts"] = flat[::2], flat[1::2]
            elemt = self.build_elemt(
                sum(self.results["sums"]), sum(self.results["counts"]))
            self.program.write_text("".join(texts + [elemt.text()]))
            self.results["parts"] = [
                np.concatenate(self.run(elemt), self.axis)]
        self.run_split(gradient)

    def run(self, function: Function) -> List[np.ndarray]:
        return [array.values for array in
                function.run(self.tools.runner, self.program)]

    def run_split(self, gradient: Function) -> None:
        source = self.directory / "gradient.mlir"
        source.write_text(gradient.text())
        split = self.directory / "split.mlir"
        split.write_text(call([self.tools.opt, str(source), "--bngrad-split"]))
        self.results["split"] = [array.values for array in gradient.run(
            self.tools.runner, split)]

    # Variants.

    def build_variants(self):
        c, operands = self.configuration, self.operands()
        function = Function("variants", c)
        names = ["other", "combined", "permuted", "statistic"]
        values = self.add_gradient(
            function, {**operands, "grad_output": c.other_dy})
        values += self.add_gradient(
            function, {**operands, "grad_output": c.combined_dy})
        values += self.add_permuted(function)
        given = "inv_std" if c.has_inv_std else "variance"
        other = ("variance", c.variance) if c.has_inv_std else (
            "inv_std", c.inv_std)
        # The order of clauses is fixed.
        values += self.add_gradient(function, dict(
            other if name == given else (name, array)
            for name, array in operands.items()))
        if self.axis is not None:
            names.append("doubled")
            values += self.add_doubled(function)
        function.returned = values
        return function, names

    def add_doubled(self, function: Function):
        c, operands = self.configuration, self.operands()
        for name in ("grad_output", "input", "mask"):
            if operands[name]:
                operands[name] = Array(operands[name].kind, np.concatenate(
                    [operands[name].values] * 2, self.axis))
        shape = operands["input"].shape
        return self.add_gradient(function, operands,
                                 shapes=[shape, c.channels, c.channels])

    def channel_permutation(self) -> List[int]:
        """The permutation of the dims of per-channel arrays."""
        c = self.configuration
        return [c.features.index(dim) for dim in self.permutation
                if dim in c.features]

    def add_permuted(self, function: Function):
        c = self.configuration
        permutations = [self.permutation, *[self.channel_permutation()] * 2]
        features = [i for i, dim in enumerate(self.permutation)
                    if dim in c.features]
        permuted = {}
        for name, array in self.operands().items():
            permutation = permutations[name not in (
                "grad_output", "input", "mask")]
            if array is None:
                permuted[name] = None
            elif self.transposes_in_ir:
                permuted[name] = function.transpose(
                    function.argument(array), permutation)
            else:
                permuted[name] = Array(
                    array.kind, array.values.transpose(permutation))
        shapes = [[shape[dim] for dim in permutation] for shape, permutation
                  in zip(c.result_shapes(), permutations)]
        values = self.add_gradient(function, permuted, features, shapes)
        if not self.transposes_in_ir:
            return values
        return [function.transpose(value, np.argsort(permutation).tolist())
                for value, permutation in zip(values, permutations)]

    def restore(self, results: List[np.ndarray]) -> List[np.ndarray]:
        permutations = [self.permutation, *[self.channel_permutation()] * 2]
        return [result.transpose(np.argsort(permutation)) for
                result, permutation in zip(results, permutations)]

    # Parts.

    def operands_of_parts(self) -> List[Dict[str, Optional[Array]]]:
        parts = [self.operands() for _ in range(len(self.cuts) + 1)]
        for name in ("grad_output", "input", "mask"):
            array = parts[0][name]
            if array:
                pieces = np.split(array.values, self.cuts, self.axis)
                for part, piece in zip(parts, pieces):
                    part[name] = Array(array.kind, piece)
        return parts

    def build_reduce(self) -> Optional[Function]:
        c = self.configuration
        if self.axis is None:
            return None
        self.parts = self.operands_of_parts()
        function = Function("reduce", c)
        for part in self.parts:
            function.returned += function.op(
                "batch_norm_backward_reduce",
                {name: part[name] for name in
                 ("grad_output", "input", "mean", "mask")},
                features_attribute(c.features),
                [(c.accumulator, (2, *c.channels)), ("i64", ())])
        return function

    def build_elemt(self, sums: np.ndarray, count: np.ndarray) -> Function:
        c = self.configuration
        function = Function("elemt", c)
        sums = Array.rounded(c.accumulator, sums)
        count = Array("i64", np.asarray(count))
        epsilon = 0.0 if c.has_inv_std else c.epsilon
        for part in self.parts:
            operands = {name: part[name] for name in part if name != "mask"}
            if c.is_batch:
                operands |= {"sums": sums, "count": count}
            operands["mask"] = part["mask"]
            function.returned += function.op(
                "batch_norm_backward_elemt", operands,
                f"{features_attribute(c.features)}, "
                f"epsilon = {epsilon:e} : f64",
                [(c.kinds[0], part["input"].shape)])
        return function
