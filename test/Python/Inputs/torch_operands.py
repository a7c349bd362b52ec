"""Random operands for the tests of torch.ops.bngrad."""

import random

import torch
import torch_reference as reference


class RandomOperands:
    """Data of random sizes, types and layouts, and their parameters. `choose` and `generator` make what a test needs
    besides.

    sizes: those of a dim.
    most: elements of the data.
    offsets: of the values of `input`.
    parameter_types: for data that are not f64.
    """

    def __init__(self, seed, *, sizes, most, offsets, parameter_types):
        self.choose = choose = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        rank = choose.randint(1, 5)
        self.shape = [choose.choice(sizes) if choose.random() < 0.9 else 2 for _ in range(rank)]
        while torch.Size(self.shape).numel() > most:
            self.shape[self.shape.index(max(self.shape))] //= 2
        self.feature_dims = sorted(choose.sample(range(rank), choose.choice([1, 1, 1, rank, choose.randint(1, rank)])))
        self.dtype = choose.choice(reference.DTYPES)
        parameter_type = self.dtype if self.dtype == torch.float64 else choose.choice(parameter_types)
        self.input = self.lay_out(self.make_data(choose.choice(offsets)), [
            layout for layout in reference.LAYOUTS if layout != "expanded"])
        channels = [self.shape[dim] for dim in self.feature_dims]
        self.mean, variance, scale = reference.make_parameters(self.generator, channels, parameter_type)
        self.scale = choose.choice([scale, None])
        self.statistic = {"inv_std": variance} if choose.random() < 0.5 else {
            "variance": variance, "epsilon": choose.choice([0.0, 1e-5, 0.1])}

    def make_data(self, offset=0.3):
        return reference.make_data(self.generator, self.shape, self.dtype, self.feature_dims, offset)

    def lay_out(self, tensor, layouts=reference.LAYOUTS):
        return reference.lay_out(tensor, self.choose.choice(layouts), self.generator)


def make_operands(dtype, shape, parameter_type=None, seed=0):
    """grad_output, input, mean, variance and scale, with features in dim 1."""
    generator = torch.Generator().manual_seed(seed)
    data = [reference.make_data(generator, shape, dtype, offset=offset) for offset in (0.3, -0.7)]
    return *data, *reference.make_parameters(generator, shape[1:2], parameter_type or dtype)
