"""A forward pass and its gradient in one function, as a layer of a training step has them."""

from typing import List

from builder import Builder
from floats import FLOATS


def pair(b: Builder, shape, depth: int) -> List[int]:
    """A forward op, a residual and a ReLU if any, and the gradient with the operands and statistics of the forward op."""
    results = b.forward(shape, depth, half=b.pick(["training"] * 3 + ["inference"]))
    forward = b.program.ops[-1]
    if b.chance(0.3):
        element = b.types[results[0]].element
        results, other = b.after(results, lambda: b.make(shape, element, depth - 1))
        results += elementwise(b, [results[0], other], [["addf", 0, 1]])
    has_mask = b.chance(0.6)
    if has_mask:
        results += relu(b, results[-1] if len(results) > len(forward.attrs["elements"]) else results[0])
    data = b.types[forward.operands[0]].element
    results, dy = b.after(results, lambda: b.make(shape, data, depth - 1))
    operands = {"grad_output": dy}
    if has_mask and b.chance(0.5):
        operands["mask"] = results[-1]
    elif has_mask:
        steps = [["const", 0.0, data], ["select", 0, 1, 2]]
        operands["grad_output"] = elementwise(b, [results[-1], dy], steps)[0]
    return results + gradient(b, forward, results, operands)


def gradient(b: Builder, forward, results: List[int], operands) -> List[int]:
    given = dict(zip(forward.attrs["names"], forward.operands))
    operands["input"] = given["input"]
    is_training = forward.kind == "training"
    if is_training:
        given.update(zip(("mean", "variance", "inv_std"), results[1:]))
    names = ["scale"] * ("scale" in given and b.chance(0.8)) + ["mean"]
    names.append(b.pick([name for name in ("variance", "inv_std") if name in given]))
    parameter = b.types[given[names[0]]].element
    operands.update((name, converted(b, given[name], parameter)) for name in names)
    names = [name for name in ("grad_output", "input", "scale", "mean", "variance", "inv_std", "mask")
             if name in operands]
    epsilon = b.epsilon(names) if b.chance(0.2) else forward.attrs["epsilon"]
    data = b.types[operands["input"]].element
    return b.add("gradient", [operands[name] for name in names], names=names, features=forward.attrs["features"],
                 epsilon=epsilon if "variance" in names else 0.0, statistics="batch" if is_training else "global",
                 elements=b.result_elements([data, parameter, parameter]))


def relu(b: Builder, value: int) -> List[int]:
    """The greater one of a value and 0, and where the value is greater."""
    element = b.types[value].element
    zero, greater = ["const", 0.0, element], ["cmpf", "ogt", 0, 1]
    steps = [zero, ["maximumf", 0, 1]] if b.chance(0.5) else [zero, greater, ["select", 2, 0, 1]]
    output = elementwise(b, [value], steps)
    return output + elementwise(b, [b.pick([value, output[0]])], [zero, greater])


def converted(b: Builder, value: int, element: str) -> int:
    before = b.types[value].element
    if before == element:
        return value
    steps = []
    if FLOATS[before].bits == FLOATS[element].bits:
        steps.append(["extf", 0, "f32"])
    is_wider = not steps and FLOATS[before].bits < FLOATS[element].bits
    steps.append(["extf" if is_wider else "truncf", len(steps), element])
    return elementwise(b, [value], steps)[0]


def elementwise(b: Builder, operands: List[int], steps: List[List]) -> List[int]:
    """The last one of `steps`, on operands of one shape."""
    loops = list(range(b.types[operands[0]].rank))
    return b.add("map", operands, style=b.pick(["arith", "generic"]), maps=[loops] * len(operands), steps=steps,
                 outs=[len(operands) + len(steps) - 1], flags="")
