"""Faults that are known and hide others: programs that have them are changed, or their reports set aside.

Empty unless somebody is mending something. Each entry of REPORTS is a regular expression for the signature of a
fault; AVOID names what the generator changes.
"""

import re
from typing import List

from program import Invalid, Op, Program

AVOID: List[str] = ["element returned", "unit dims of slices"]
REPORTS: List[str] = ["expected fusion to reach a fixed point"]


def is_known(signature: str) -> bool:
    return any(re.search(pattern, signature) for pattern in REPORTS)


def avoid(program: Program) -> Program:
    """Negates what elemt gives before it is returned; refuses slices of lower rank with unit dims."""
    if "unit dims of slices" in AVOID:
        for op in program.ops:
            units = [d for d, size in enumerate(op.attrs.get("sizes", [])) if size == 1]
            if op.kind == "slice" and op.attrs["dropped"] and (
                    units != op.attrs["dropped"] or any(op.attrs["strides"][d] != 1 for d in units)):
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
