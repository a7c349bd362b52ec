"""Runs one case with expected values in every form that can express it."""

from typing import Callable, Dict, List, Tuple

import numpy as np

from cases import DATA, SUMS, Case, SchemaError, compare, read_tolerance
from programs import (RESULTS, Argument, Failure, Gradient, Tools,
                      bngrad_program, stablehlo_program, tensor_type,
                      to_double, to_element, torch_program)
from rounding import Arrays, closed_form, half_unit, slack_of

ORDER = ("grad_output", "input", "scale", "mean", "variance", "inv_std",
         "sums", "count", "mask")  # of operands of the ops


class Variant:
    """A case in one pair of element types, with static or dynamic shapes."""

    def __init__(self, case: Case, tools: Tools, data: str, parameters: str,
                 is_dynamic: bool):
        self.case, self.tools, self.is_dynamic = case, tools, is_dynamic
        self.data, self.parameters = data, parameters
        self.accumulator = "f64" if "f64" in (data, parameters) else "f32"
        self.needed_slack = False

    def element(self, name: str) -> str:
        """The element type of an operand or a result."""
        return {"grad_output": self.data, "input": self.data, "mask": "i1",
                "sums": self.accumulator, "count": "i64",
                "sum_dy": self.accumulator, "sum_dy_xmu": self.accumulator,
                "grad_input": self.data}.get(name, self.parameters)

    def type(self, name: str, shape: Tuple[int, ...]) -> str:
        return tensor_type([None] * len(shape) if self.is_dynamic else shape,
                           self.element(name))

    def gradient(self, operands: Arrays, returned: Tuple[str, ...],
                 shapes: Dict[str, Tuple[int, ...]]) -> Gradient:
        """`shapes` are those of all results."""
        return Gradient(
            operands={name: self.type(name, operands[name].shape)
                      for name in ORDER if name in operands},
            results={name: self.type(name, shape)
                     for name, shape in shapes.items()},
            returned=returned, feature_dims=self.case.feature_dims,
            epsilon=self.case.epsilon, statistics=self.case.statistics)

    def evaluate(self, text: str, gradient: Gradient,
                 operands: Arrays) -> Arrays:
        return self.tools.evaluate(
            text, {name: Argument(operands[name], self.element(name))
                   for name in gradient.operands},
            {name: self.element(name) for name in gradient.returned})

    def check(self, name: str, actual: np.ndarray, expected: np.ndarray,
              operands: Arrays, rows: slice = slice(None)) -> None:
        """`actual` is the result for `operands`, or `rows` of it."""
        element = self.element(name)
        actual = to_double(actual, element)
        tolerance = read_tolerance(self.case.tolerance, self.data, name)
        try:
            compare(name, actual, expected, tolerance, element)
        except Failure:
            slack = slack_of(
                operands, lambda name, values: to_double(
                    to_element(values, self.element(name)), self.element(name)),
                lambda operands: closed_form(operands, self.case.feature_dims,
                                             self.case.epsilon,
                                             self.case.statistics))[name]
            compare(name, actual, expected, tolerance, element,
                    slack[rows] + half_unit(expected))
            self.needed_slack = True

    def run_whole(self, operands: Arrays, expected: Arrays,
                  has_forms: bool) -> None:
        """batch_norm_backward and, with `has_forms`, ops imported to it."""
        channel = self.case.channel_shape()
        shapes = {"grad_input": operands["input"].shape,
                  "grad_scale": channel, "grad_offset": channel}
        returned = tuple(name for name in RESULTS if name in expected)

        def run(label: str, program: Callable[[Gradient], str],
                operands: Arrays) -> Arrays:
            gradient = self.gradient(operands, returned, shapes)
            try:
                results = self.evaluate(program(gradient), gradient, operands)
                for name in returned:
                    self.check(name, results[name], expected[name], operands)
            except Failure as failure:
                raise Failure(f"{label}: {failure}") from None
            return results

        own = run("bngrad", bngrad_program, operands)
        if not has_forms:
            return
        if self.is_stablehlo(operands):
            for dialect in ("stablehlo", "mhlo"):
                results = run(dialect, lambda gradient: stablehlo_program(
                    gradient, dialect), operands)
                for name in returned:
                    if results[name].tobytes() != own[name].tobytes():
                        raise Failure(f"{dialect}: expected the bits of the "
                                      f"bngrad op in {name}, got others")
        if self.case.feature_dims == (1,) and "mask" not in operands:
            run("torch", torch_program, self.for_torch(operands))

    def is_stablehlo(self, operands: Arrays) -> bool:
        """Whether StableHLO's op can express this: its epsilon is an f32."""
        epsilon = self.case.epsilon
        return ({"scale", "variance"} <= operands.keys()
                and "mask" not in operands and len(self.case.feature_dims) == 1
                and self.case.statistics == "batch"
                and (self.accumulator == "f32"
                     or epsilon == float(np.float32(epsilon))))

    def for_torch(self, operands: Arrays) -> Arrays:
        """With inv_std in training and variance otherwise, as in torch."""
        operands = dict(operands)
        if self.case.statistics == "batch" and "variance" in operands:
            operands["inv_std"] = 1 / np.sqrt(
                operands.pop("variance") + self.case.epsilon)
        elif self.case.statistics == "global" and "inv_std" in operands:
            operands["variance"] = operands.pop("inv_std") ** -2.0
        return operands

    def run_half(self, half: str, operands: Arrays,
                 shapes: Dict[str, Tuple[int, ...]]) -> Arrays:
        gradient = self.gradient(operands, tuple(shapes), shapes)
        try:
            return self.evaluate(
                bngrad_program(gradient, f"batch_norm_backward_{half}"),
                gradient, operands)
        except Failure as failure:
            raise Failure(f"{half}: {failure}") from None

    def reduce(self, operands: Arrays) -> Arrays:
        """sums and count of the operands."""
        names = ("grad_output", "input", "mean", "mask")
        return self.run_half(
            "reduce", {name: operands[name] for name in names
                       if name in operands},
            {"sums": (2, *self.case.channel_shape()), "count": ()})

    def elemt(self, operands: Arrays) -> np.ndarray:
        """grad_input; the operands have sums, which global statistics drop."""
        if self.case.statistics == "global":
            operands = {name: values for name, values in operands.items()
                        if name not in ("sums", "count")}
        return self.run_half("elemt", operands, {
            "grad_input": operands["input"].shape})["grad_input"]

    def run_elemt(self) -> None:
        """Sums and counts are given: only the second half."""
        operands = dict(self.case.operands)
        operands["sums"] = np.stack([operands.pop(name) for name in SUMS])
        if "count" in operands:
            operands["count"] = operands["count"].sum()
        self.check("grad_input", self.elemt(operands),
                   self.case.expected["grad_input"], operands)

    def check_sums(self, sums: np.ndarray, expected: Arrays,
                   operands: Arrays) -> None:
        for row, name in enumerate(SUMS):
            if name in expected:
                self.check(name, sums[row], expected[name], operands)

    def run_shards(self) -> None:
        """Both halves of a batch in parts; adds sums and counts in between."""
        parts = [{name: values[shard.rows] if name in DATA else values
                  for name, values in self.case.operands.items()}
                 for shard in self.case.shards]
        halves = [self.reduce(part) for part in parts]
        total = {name: sum((half[name] for half in halves[1:]), halves[0][name])
                 for name in ("sums", "count")}
        for i, (shard, part, half) in enumerate(
                zip(self.case.shards, parts, halves)):
            try:
                if shard.count is not None and half["count"] != shard.count:
                    raise Failure(f"expected a count of {shard.count}, "
                                  f"got {half['count']}")
                self.check_sums(half["sums"], shard.expected, part)
                # Local parameter gradients are those of the part.
                local = {name: values for name, values in shard.expected.items()
                         if name in RESULTS}
                if local:
                    self.run_whole(part, local, has_forms=False)
                if "grad_input" in self.case.expected:
                    self.check("grad_input", self.elemt({**part, **total}),
                               self.case.expected["grad_input"][shard.rows],
                               self.case.operands, shard.rows)
            except Failure as failure:
                raise Failure(f"shards[{i}]: {failure}") from None


def run_variant(variant: Variant) -> None:
    case = variant.case
    if SUMS[0] in case.operands:
        variant.run_elemt()
        return
    whole = {name: values for name, values in case.expected.items()
             if name in RESULTS}
    if whole:
        variant.run_whole(case.operands, whole, has_forms=True)
    if set(SUMS) & case.expected.keys():
        variant.check_sums(variant.reduce(case.operands)["sums"],
                           case.expected, case.operands)
    if case.shards:
        variant.run_shards()


def check_case(case: Case, tools: Tools) -> List[str]:
    """Runs `case` in all forms; returns the element types that needed slack,
    and fails with the form that is wrong."""
    if case.shards and 0 in case.feature_dims:
        raise SchemaError("expected dim 0 of a batch in shards to be reduced")
    needed_slack = []
    for data, parameters in case.elements:
        types = data if data == parameters else f"{data}/{parameters}"
        for is_dynamic in (False, True):
            variant = Variant(case, tools, data, parameters, is_dynamic)
            try:
                run_variant(variant)
            except Failure as failure:
                shapes = "dynamic" if is_dynamic else "static"
                raise Failure(f"{types}, {shapes} shapes: {failure}") from None
            if variant.needed_slack and types not in needed_slack:
                needed_slack.append(types)
    return needed_slack
