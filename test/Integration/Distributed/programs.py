"""Programs with shard annotations, as text."""

import dataclasses

NAMES = ("grad_input", "grad_scale", "grad_offset")


@dataclasses.dataclass
class Gradient:
    """One op. `shape` has None for a dynamic size; `split` are the grid axes of each dim of input."""
    shape: tuple = (6, 4, 5, 3)
    split: str = "[[0]]"
    data: str = "f32"
    parameter: str = "f32"
    features: tuple = (1,)
    mask: bool = False
    epsilon: float = 1e-3
    attributes: str = ""
    results: tuple = NAMES


def tensor(shape, element):
    return "tensor<" + "".join(f"{'?' if size is None else size}x" for size in shape) + element + ">"


def argument_types(gradient):
    data = tensor(gradient.shape, gradient.data)
    parameter = tensor([gradient.shape[dim] for dim in gradient.features], gradient.parameter)
    mask = [tensor(gradient.shape, "i1")] if gradient.mask else []
    return [data, data, parameter, parameter, parameter, *mask]


def result_types(gradient):
    data, _, parameter = argument_types(gradient)[:3]
    return [data, parameter, parameter]


def write_op(gradient, number, first):
    """The lines of op `number`, whose operands are the arguments from `first`; its result is %rN."""
    types = argument_types(gradient)
    dy, x, scale, mean, variance, *mask = [f"%a{first + i} : {kind}" for i, kind in enumerate(types)]
    mask = f" mask({mask[0]})" if mask else ""
    attributes = ", ".join([f"epsilon = {gradient.epsilon:e} : f64", f"feature_dims = array<i64: {', '.join(map(str, gradient.features))}>"] +
                           ([gradient.attributes] if gradient.attributes else []))
    name, kind = x.split(" : ")
    return [
        f"%s{number} = shard.sharding @grid split_axes = {gradient.split} : !shard.sharding",
        f"%x{number} = shard.shard {name} to %s{number} : {kind}",
        f"%r{number}:3 = bngrad.batch_norm_backward grad_output({dy}) input(%x{number} : {kind}) scale({scale}) "
        f"mean({mean}) variance({variance}){mask} {{{attributes}}} : {', '.join(result_types(gradient))}",
    ]


def write_program(grid, gradients, name="gradient"):
    """A function of independent ops on a grid such as 2x2."""
    arguments, lines, returned, types = [], [], [], []
    for number, gradient in enumerate(gradients):
        lines += write_op(gradient, number, len(arguments))
        arguments += argument_types(gradient)
        for result in gradient.results:
            returned.append(f"%r{number}#{NAMES.index(result)}")
            types.append(result_types(gradient)[NAMES.index(result)])
    head = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(arguments))
    body = "".join(f"  {line}\n" for line in lines)
    return (f"shard.grid @grid(shape = {grid})\nfunc.func @{name}({head}) -> ({', '.join(types)}) {{\n{body}"
            f"  return {', '.join(returned)} : {', '.join(types)}\n}}\n")


def random_arguments(gradients, shapes):
    """--arg of bngrad-runner for ops on whole arrays of `shapes`."""
    arguments = []
    for gradient, shape in zip(gradients, shapes):
        channels = [shape[dim] for dim in gradient.features]
        sizes = [shape, shape, channels, channels, channels] + [shape] * gradient.mask
        for i, size in enumerate(sizes):
            # A variance, whose name the program does not have.
            values = f"{len(arguments) + 1}" + (":0.5:1.5" if i == 4 else "")
            arguments.append(f"--arg=random:{values}@{'x'.join(map(str, size))}")
    return arguments
