"""The bodies of element-wise operations: a sequence of steps on scalars.

A step is a list: the operation, the numbers of its operands among inputs and
earlier steps, and attributes. The same steps are written as arith on whole
tensors, or in the region of a linalg operation.
"""

from typing import List, Sequence

import numpy as np

import known
from bounded import Bounded, compare, extremum, select, times
from floats import FLOATS, Real
from values import Invalid

BINARY = {"addf": Bounded.__add__, "subf": Bounded.__sub__, "mulf": Bounded.__mul__, "divf": Bounded.__truediv__}
# By name: the function, and its largest slope between two points.
FUNCTIONS = {
    "exp": (np.exp, lambda low, high: np.exp(high)),
    "tanh": (np.tanh, lambda low, high: Real(1)),
    "sin": (np.sin, lambda low, high: Real(1)),
    "log1p": (np.log1p, lambda low, high: np.where(low > -1, 1 / (1 + low), Real(np.inf))),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda low, high: np.where(low > 0, low ** Real(-1.5), Real(np.inf))),
}
# Error of functions of a mathematical library, in units of roundoff.
LIBRARY_ERROR = 8
ARITHMETIC = [*BINARY, "maximumf", "minimumf"]


def infer(steps: Sequence[List], elements: Sequence[str]) -> List[str]:
    """The element types of inputs and steps."""
    elements = list(elements)

    def same(*numbers: int) -> str:
        found = {elements[n] for n in numbers}
        if len(found) != 1 or not found <= set(FLOATS):
            raise Invalid(f"operands of types {sorted(found)}")
        return found.pop()

    for step in steps:
        what = step[0]
        if what == "const":
            elements.append(step[2])
        elif what in ARITHMETIC:
            elements.append(same(step[1], step[2]))
        elif what == "fma":
            elements.append(same(*step[1:4]))
        elif what in ("extf", "truncf"):
            before, after = FLOATS[same(step[1])].bits, FLOATS[step[2]].bits
            if before == after or (before < after) != (what == "extf"):
                raise Invalid("cast")
            elements.append(step[2])
        elif what == "cmpf":
            same(step[2], step[3])
            elements.append("i1")
        elif what == "select":
            if elements[step[1]] != "i1":
                raise Invalid("condition")
            elements.append(same(step[2], step[3]))
        elif what == "uitofp":
            if elements[step[1]] != "i1":
                raise Invalid("condition")
            elements.append(step[2])
        else:
            elements.append(same(step[1]))
    return elements


def gross(step: List, sizes: Sequence[np.ndarray], value: Bounded) -> np.ndarray:
    """A bound of all intermediate values under reassociation: the same steps on absolute values."""
    if step[0] in ("addf", "subf"):
        return sizes[step[1]] + sizes[step[2]]
    if step[0] == "mulf":
        return times(sizes[step[1]], sizes[step[2]])
    return value.magnitude()


def evaluate(steps: Sequence[List], inputs: Sequence[Bounded], elements: Sequence[str], flags: str) -> List[Bounded]:
    values = list(inputs)
    sizes = [value.magnitude() for value in values]
    for step, element in zip(steps, elements[len(inputs):]):
        what = step[0]
        if what == "const":
            values.append(Bounded(np.asarray(step[1], dtype=Real)))
        elif what in BINARY:
            values.append(BINARY[what](values[step[1]], values[step[2]]).rounded(element))
        elif what == "fma":
            # The product is rounded or not: a bound for both.
            values.append((values[step[1]] * values[step[2]] + values[step[3]]).rounded(element))
        elif what in ("maximumf", "minimumf"):
            function = np.maximum if what == "maximumf" else np.minimum
            values.append(extremum(function, values[step[1]], values[step[2]]))
        elif what == "cmpf":
            values.append(compare(step[1], values[step[2]], values[step[3]]))
        elif what == "select":
            values.append(select(*(values[n] for n in step[1:4])))
        elif what in ("extf", "uitofp"):
            values.append(values[step[1]])
        elif what == "truncf":
            values.append(values[step[1]].rounded(element))
        elif what == "negf":
            values.append(-values[step[1]])
        elif what == "absf":
            values.append(abs(values[step[1]]))
        elif what == "sqrt":
            values.append(values[step[1]].sqrt().rounded(element))
        else:
            value = values[step[1]].through(*FUNCTIONS[what])
            error = value.error + LIBRARY_ERROR * FLOATS[element].roundoff * np.abs(value.value)
            values.append(Bounded(value.value, error).rounded(element))
        if what not in ("const", "cmpf", "select", "extf", "negf", "absf"):
            values[-1] = known.flushed(values[-1], element)
        sizes.append(gross(step, sizes, values[-1]))
        if "reassoc" in flags and what in BINARY:
            value, size = values[-1], sizes[-1]
            error = value.error + len(steps) * FLOATS[element].roundoff * size
            values[-1] = Bounded(value.value, np.where(size < FLOATS[element].largest, error, Real(np.inf)))
    return values


def write(writer, steps: Sequence[List], inputs: Sequence[str], elements: Sequence[str], type_of, constant,
          flags: str) -> List[str]:
    """`type_of(element)` is the text of a type, `constant(value, element)` defines one."""
    names = list(inputs)
    flag = f" fastmath<{flags}>" if flags else ""
    for step, element in zip(steps, elements[len(inputs):]):
        what, type = step[0], type_of(element)
        operands = [names[n] for n in step[1:] if isinstance(n, int)]
        listed = ", ".join(operands)
        if what == "const":
            names.append(constant(step[1], element))
        elif what in ARITHMETIC:
            names.append(writer.define(f"arith.{what} {listed}{flag} : {type}"))
        elif what in ("extf", "truncf", "uitofp"):
            names.append(writer.define(f"arith.{what} {listed} : {type_of(elements[step[1]])} to {type}"))
        elif what == "cmpf":
            names.append(writer.define(f"arith.cmpf {step[1]}, {listed} : {type_of(elements[step[2]])}"))
        elif what == "select":
            condition = type_of("i1")
            types = type if condition == "i1" else f"{condition}, {type}"
            names.append(writer.define(f"arith.select {listed} : {types}"))
        elif what == "negf":
            names.append(writer.define(f"arith.negf {listed} : {type}"))
        else:
            names.append(writer.define(f"math.{what} {listed} : {type}"))
    return names
