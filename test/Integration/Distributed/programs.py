"""Programs with shard annotations, as text."""

import dataclasses

NAMES = ("grad_input", "grad_scale", "grad_offset")
FORWARD_NAMES = ("output", "mean", "variance", "inv_std")


def tensor(shape, element):
    return "tensor<" + "".join(f"{'?' if size is None else size}x" for size in shape) + element + ">"


@dataclasses.dataclass
class Op:
    """One op. `shape` has None for a dynamic size; `split` are the grid axes of each dim of input."""
    shape: tuple = (6, 4, 5, 3)
    split: str = "[[0]]"
    data: str = "f32"
    parameter: str = "f32"
    features: tuple = (1,)
    epsilon: float = 1e-3

    def channels(self, shape):
        return [shape[dim] for dim in self.features]

    def data_type(self):
        return tensor(self.shape, self.data)

    def parameter_type(self):
        return tensor(self.channels(self.shape), self.parameter)

    def attributes_of(self, epsilon, more=""):
        listed = [f"epsilon = {epsilon:e} : f64", f"feature_dims = array<i64: {', '.join(map(str, self.features))}>", *([more] if more else [])]
        return "{" + ", ".join(listed) + "}"

    def write_annotation(self, number, name):
        """Annotates input: it is %xN."""
        kind = self.data_type()
        return [
            f"%s{number} = shard.sharding @grid split_axes = {self.split} : !shard.sharding",
            f"%x{number} = shard.shard {name} to %s{number} : {kind}",
        ]


@dataclasses.dataclass
class Gradient(Op):
    mask: bool = False
    attributes: str = ""
    results: tuple = NAMES

    def argument_types(self):
        mask = [tensor(self.shape, "i1")] if self.mask else []
        return [self.data_type()] * 2 + [self.parameter_type()] * 3 + mask

    def argument_values(self, shape):
        """Of each argument, its whole shape and its range."""
        channels = self.channels(shape)
        return [(shape, "")] * 2 + [(channels, "")] * 2 + [(channels, ":0.5:1.5")] + [(shape, "")] * self.mask

    def result_values(self, number):
        """The name and the type of each result."""
        types = [self.data_type(), self.parameter_type(), self.parameter_type()]
        return {name: (f"%r{number}#{i}", kind) for i, (name, kind) in enumerate(zip(NAMES, types))}

    def write(self, number, first):
        """The lines of op `number`, whose operands are the arguments from `first`."""
        types = self.argument_types()
        dy, x, scale, mean, variance, *mask = [f"%a{first + i} : {kind}" for i, kind in enumerate(types)]
        mask = f" mask({mask[0]})" if mask else ""
        name, kind = x.split(" : ")
        results = ", ".join(kind for _, kind in self.result_values(number).values())
        return [
            *self.write_annotation(number, name),
            f"%r{number}:3 = bngrad.batch_norm_backward grad_output({dy}) input(%x{number} : {kind}) scale({scale}) "
            f"mean({mean}) variance({variance}){mask} {self.attributes_of(self.epsilon, self.attributes)} : {results}",
        ]


@dataclasses.dataclass
class Training(Op):
    """A forward pass, and its gradient if one of `NAMES` is a result."""
    results: tuple = FORWARD_NAMES
    values: str = ""  # the range of input

    def has_gradient(self):
        return not set(self.results).isdisjoint(NAMES)

    def argument_types(self):
        return [self.data_type(), self.parameter_type(), self.parameter_type()] + [self.data_type()] * self.has_gradient()

    def argument_values(self, shape):
        channels = self.channels(shape)
        return [(shape, self.values), (channels, ":0.5:1.5"), (channels, "")] + [(shape, "")] * self.has_gradient()

    def result_values(self, number):
        data, parameter = self.data_type(), self.parameter_type()
        types = dict(zip(FORWARD_NAMES, [data] + [parameter] * 3))
        values = {name: (f"%f{number}#{i}", kind) for i, (name, kind) in enumerate(types.items())}
        types = dict(zip(NAMES, [data] + [parameter] * 2))
        return {**values, **{name: (f"%r{number}#{i}", kind) for i, (name, kind) in enumerate(types.items())}}

    def write(self, number, first):
        data, parameter = self.data_type(), self.parameter_type()
        x, scale, offset, *dy = [f"%a{first + i}" for i in range(len(self.argument_types()))]
        annotated = f"%x{number} : {data}"
        lines = [
            *self.write_annotation(number, x),
            f"%f{number}:4 = bngrad.batch_norm_training input({annotated}) scale({scale} : {parameter}) offset({offset} : {parameter}) "
            f"{self.attributes_of(self.epsilon)} : {', '.join([data] + [parameter] * 3)}",
        ]
        if dy:
            lines.append(
                f"%r{number}:3 = bngrad.batch_norm_backward grad_output({dy[0]} : {data}) input({annotated}) scale({scale} : {parameter}) "
                f"mean(%f{number}#1 : {parameter}) inv_std(%f{number}#3 : {parameter}) {self.attributes_of(0)} : {data}, {parameter}, {parameter}")
        return lines


def write_program(grid, ops, name="gradient"):
    """A function of independent ops on a grid such as 2x2."""
    arguments, lines, returned, types = [], [], [], []
    for number, op in enumerate(ops):
        lines += op.write(number, len(arguments))
        arguments += op.argument_types()
        values = op.result_values(number)
        for result in op.results:
            returned.append(values[result][0])
            types.append(values[result][1])
    head = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(arguments))
    body = "".join(f"  {line}\n" for line in lines)
    return (f"shard.grid @grid(shape = {grid})\nfunc.func @{name}({head}) -> ({', '.join(types)}) {{\n{body}"
            f"  return {', '.join(returned)} : {', '.join(types)}\n}}\n")


def random_arguments(ops, shapes):
    """--arg of bngrad-runner for ops on whole arrays of `shapes`."""
    arguments = []
    for op, shape in zip(ops, shapes):
        for size, values in op.argument_values(shape):
            arguments.append(f"--arg=random:{len(arguments) + 1}{values}@{'x'.join(map(str, size))}")
    return arguments
