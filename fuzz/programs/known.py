"""Known faults that hide others: programs are changed to avoid them, or their reports are ignored.

Empty unless a fault is being fixed. Each entry of REPORTS is a regular expression for the signature of a fault;
AVOID names constructs that the generator avoids.
"""

import re
from typing import List

from bounded import Bounded
from floats import Real
from program import Program
from values import Invalid, Op

AVOID: List[str] = []
# Element types whose subnormal numbers arithmetic outside of gradients may flush to
# 0.
FLUSHED: List[str] = []
REPORTS: List[str] = []


def forget() -> None:
    """Includes known faults in the search."""
    AVOID.clear(), FLUSHED.clear(), REPORTS.clear()


def is_known(signature: str) -> bool:
    return any(re.search(pattern, signature) for pattern in REPORTS)


def avoid(program: Program) -> Program:
    """Negates results of elemt before they are returned; rejects rank-reducing slices with unit dims."""
    if "unit dims of slices" in AVOID:
        for op in program.ops:
            units = [d for d, size in enumerate(op.attrs.get("sizes", [])) if size == 1]
            if op.kind == "slice" and op.attrs["dropped"] and (
                    units != op.attrs["dropped"] or any(op.attrs["strides"][d] != 1 for d in units)):
                raise Invalid("known")
    if "expanded to two unknown sizes" in AVOID:
        types = program.types()
        for op, results in program.result_ranges():
            if op.kind == "expand" and any(
                    sum(types[results[0]].dynamic[d] for d in group) > 1 for group in op.attrs["groups"]):
                raise Invalid("known")
            # Fusion converts a collapse to such an expand.
            if op.kind == "collapse" and any(
                    sum(types[op.operands[0]].dynamic[d] for d in group) > 1 for group in op.attrs["groups"]):
                raise Invalid("known")
    if "element returned" not in AVOID:
        return program
    for op, results in list(program.result_ranges()):
        if op.kind == "element" and results[0] in program.returns:
            types = program.types()
            number = len(types)
            program.ops.append(Op("map", [results[0]], {
                "style": "arith", "maps": [list(range(types[results[0]].rank))], "steps": [["negf", 0]], "outs": [1],
                "flags": ""}))
            program.returns = [number if r == results[0] else r for r in program.returns]
    return program


def flushed(value: Bounded, element: str) -> Bounded:
    """Extends the bound by the flushing that FLUSHED allows."""
    if element not in FLUSHED:
        return value
    return Bounded(value.value, value.error + Real(2) ** -125)
