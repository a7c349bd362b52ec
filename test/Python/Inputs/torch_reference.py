"""The gradient and the forward pass in extended precision, their bounds (docs/numerics.md), and random
tensors for the tests of bngrad.torch."""

import random

import numpy as np
import torch

UNIT_ROUNDOFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24, torch.float64: 2.0**-53}
SMALLEST = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149, torch.float64: 5e-324}
DTYPES = tuple(UNIT_ROUNDOFF)
# More digits than f64 has, to judge f64.
EXACT = np.longdouble


def to_exact(tensor):
    return None if tensor is None else tensor.detach().double().numpy().astype(EXACT)


class Expected:
    """Exact gradients and the bounds of their errors.

    `sums`, of shape (2, channels...), and `count`: those of the halves, given
    as exact numbers.
    """

    def __init__(self, grad_output, input, mean, *, scale=None, variance=None, inv_std=None, epsilon=0.0, mask=None,
                 feature_dims=(1,), statistics="batch", sums=None, count=None):
        rank = input.dim()
        features = [dim % rank for dim in feature_dims]
        self.reduced = tuple(dim for dim in range(rank) if dim not in features)
        spread = lambda value: np.expand_dims(value, self.reduced)
        total = lambda value: value.sum(self.reduced, keepdims=False) if self.reduced else value
        types = [tensor.dtype for tensor in (input, mean, scale, variance, inv_std) if tensor is not None]
        self.accumulator = torch.float64 if torch.float64 in types else torch.float32
        self.input_type, self.parameter_type = input.dtype, mean.dtype
        d, x, m = to_exact(grad_output), to_exact(input), to_exact(mean)
        if mask is not None:
            d = np.where(mask.numpy(), d, EXACT(0))
        own = int(np.prod([input.shape[dim] for dim in self.reduced], dtype=np.int64))
        self.count = own if count is None else count
        centered = x - spread(m)
        self.sums = np.stack([total(d), total(d * centered)])
        self.sums_terms = np.stack([total(abs(d)), total(abs(d) * abs(centered))])
        if variance is None and inv_std is None:
            return
        r = to_exact(inv_std) if inv_std is not None else 1 / np.sqrt(to_exact(variance) + EXACT(epsilon))
        factor = r if scale is None else r * to_exact(scale)
        given = self.sums if sums is None else to_exact(sums)
        given_terms = self.sums_terms if sums is None else abs(given)
        self.grad_offset, self.offset_terms = self.sums[0], self.sums_terms[0]
        self.grad_scale, self.scale_terms = self.sums[1] * r, self.sums_terms[1] * r
        if statistics == "global":
            self.grad_input = d * spread(factor)
            self.input_terms = abs(self.grad_input)
            return
        n = max(self.count, 1)
        self.grad_input = spread(factor) * (d - spread(given[0] / n) - centered * spread(r * r * given[1] / n))
        self.input_terms = abs(spread(factor)) * (abs(d) + spread(given_terms[0] / n) +
                                                  abs(centered) * spread(r * r * given_terms[1] / n))

    def check(self, name, result, exact, terms, dtype):
        assert result.dtype == dtype, (name, result.dtype, dtype)
        u = UNIT_ROUNDOFF[self.accumulator]
        bound = (UNIT_ROUNDOFF[dtype] * abs(exact) + 4 * u * (4 + np.log2(EXACT(self.count + 1))) * terms +
                 SMALLEST[dtype])
        error = abs(to_exact(result) - exact)
        assert result.shape == exact.shape, (name, result.shape, exact.shape)
        worst = np.max(error / bound) if error.size else 0
        assert not (error > bound).any() and not np.isnan(error).any(), f"{name}: {float(worst):.3g} of the bound"

    def check_gradients(self, grad_input, grad_scale, grad_offset):
        """Compares those that are not None."""
        if grad_input is not None:
            self.check("grad_input", grad_input, self.grad_input, self.input_terms, self.input_type)
        if grad_scale is not None:
            self.check("grad_scale", grad_scale, self.grad_scale, self.scale_terms, self.parameter_type)
        if grad_offset is not None:
            self.check("grad_offset", grad_offset, self.grad_offset, self.offset_terms, self.parameter_type)

    def check_sums(self, sums):
        self.check("sums", sums, self.sums, self.sums_terms, self.accumulator)


class ExpectedForward:
    """The exact results of a forward pass, and the bounds of their errors: of inference with a given mean, else of
    training. `running` are the mean and variance before the call, `parameter_type` is the type of all statistics."""

    def __init__(self, input, scale=None, offset=None, *, mean=None, variance=None, inv_std=None, epsilon=0.0,
                 feature_dims=(1,), running=None, momentum=0.1, parameter_type):
        self.input_type, self.parameter_type = input.dtype, parameter_type
        given = [tensor.dtype for tensor in (input, scale, offset, mean, variance, inv_std) if tensor is not None]
        unit = UNIT_ROUNDOFF[torch.float64 if torch.float64 in given else torch.float32]
        dims = tuple(dim for dim in range(input.dim()) if dim not in [each % input.dim() for each in feature_dims])
        spread = lambda value: np.expand_dims(value, dims)
        x = to_exact(input)
        count = int(np.prod([input.shape[dim] for dim in dims], dtype=np.int64))
        grown = 4 * unit * (4 + np.log2(EXACT(count + 1)))
        scale = EXACT(1) if scale is None else spread(to_exact(scale))
        offset = EXACT(0) if offset is None else spread(to_exact(offset))
        if mean is not None:
            r = to_exact(inv_std) if inv_std is not None else 1 / np.sqrt(to_exact(variance) + EXACT(epsilon))
            product = (x - spread(to_exact(mean))) * (scale * spread(r))
            self.results = {"output": (product + offset, 16 * unit * (abs(product) + abs(offset)))}
            return
        average = lambda value: value.sum(dims) / max(count, 1)
        m = average(x)
        m = m + average(x - spread(m))
        v = average((x - spread(m))**2)
        is_constant = np.ones_like(m, bool) if not x.size else x.max(dims) == x.min(dims)
        root = np.where(is_constant, 0, np.sqrt(12 * v) + 2 * grown * np.sqrt(m**2 + v))
        r = 1 / np.sqrt(v + EXACT(epsilon))
        relative = 1 + root**2 / (v + EXACT(epsilon))
        centered = x - spread(m)
        error = grown * (abs(scale) * spread(r) * (abs(centered) * spread(relative) + spread(root + unit * abs(m)))
                         + abs(offset))
        self.results = {
            "output": (centered * spread(r) * scale + offset, np.where(spread(is_constant), 0, error)),
            "mean": (m, grown * root + unit * abs(m)), "variance": (v, grown * root**2),
            "inv_std": (r, grown * r * relative)}
        if running is not None and running[0] is not None:
            # PyTorch's running variance is unbiased, and NaN for one element.
            factor = EXACT(count) / (count - 1) if count > 1 else EXACT(np.nan)
            for name, old, new, of_new in (("running_mean", running[0], m, self.results["mean"][1]),
                                           ("running_variance", running[1], v * factor, factor * grown * root**2)):
                old = to_exact(old)
                self.results[name] = ((1 - EXACT(momentum)) * old + EXACT(momentum) * new,
                                      8 * unit * (abs(old) + abs(new)) + momentum * of_new)

    def check(self, **results):
        for name, result in results.items():
            value, error = self.results[name]
            dtype = self.input_type if name == "output" else self.parameter_type
            assert result.dtype == dtype and result.shape == value.shape, (name, result.dtype, result.shape)
            bound = error + UNIT_ROUNDOFF[dtype] * (abs(value) + error) + EXACT(SMALLEST[dtype])
            result = to_exact(result)
            assert ((abs(result - value) <= bound) | (np.isnan(result) & np.isnan(value))).all(), name


def make_backward(seed):
    """Random arguments of aten::native_batch_norm_backward, and what it computes."""
    choose = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    shape = [choose.choice([1, 2, 3, 5, 8, 17, 33]) for _ in range(choose.randint(2, 5))]
    if choose.random() < 0.1:
        shape[choose.randrange(len(shape))] = choose.choice([0, 700])
    while torch.Size(shape).numel() > 50000:
        shape[shape.index(max(shape))] //= 2
    dtype = choose.choice(DTYPES)
    parameter_type = parameter_type_of(dtype, choose)
    data = [lay_out(make_data(generator, shape, dtype, offset=offset),
                              choose.choice(LAYOUTS), generator) for offset in (0.3, -0.7)]
    mean, variance, scale = make_parameters(generator, shape[1:2], parameter_type)
    weight = choose.choice([scale, None])
    output_mask = [choose.random() < 0.8 for _ in range(3)]
    epsilon = choose.choice([1e-5, 1e-3])
    if choose.random() < 0.5:
        arguments = (*data, weight, None, None, mean, variance, True, epsilon, output_mask)
        keywords = {"inv_std": variance}
    else:
        arguments = (*data, weight, mean, variance, None, None, False, epsilon, output_mask)
        keywords = {"variance": variance, "epsilon": epsilon, "statistics": "global"}
    return arguments, Expected(*data, mean, scale=weight, **keywords)


def make_forward(seed, is_training=None):
    """Random arguments of aten::native_batch_norm."""
    choose = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    shape = [choose.choice([1, 2, 3, 5, 8, 17, 33]) for _ in range(choose.randint(2, 5))]
    if choose.random() < 0.1:
        shape[choose.randrange(len(shape))] = 700
    while torch.Size(shape).numel() > 50000:
        shape[shape.index(max(shape))] //= 2
    dtype = choose.choice(DTYPES)
    parameter_type = parameter_type_of(dtype, choose)
    if is_training is None:
        is_training = choose.random() < 0.6
    # One element per channel has the variance 0, with which inv_std has no bound.
    if is_training and torch.Size(shape).numel() == shape[1]:
        shape[0] += 1
    data = make_data(generator, shape, dtype, offset=choose.choice([0.3, -40, 3000 if dtype.itemsize > 2 else 5]))
    data = lay_out(data, choose.choice([each for each in LAYOUTS if each != "expanded"]), generator)
    mean, variance, scale = make_parameters(generator, shape[1:2], parameter_type)
    bias = mean.flip(0) + 0.25
    weight, bias = choose.choice([(scale, bias), (scale, None), (None, bias), (None, None)])
    running = (mean, variance) if not is_training or choose.random() < 0.7 else (None, None)
    return data, weight, bias, *running, is_training, choose.choice([0.1, 0.3, 1.0, 0.0]), choose.choice([1e-5, 1e-3])


def expect_forward(input, weight, bias, mean, variance, is_training, momentum, epsilon):
    """What aten::native_batch_norm computes."""
    parameter_type = next((t.dtype for t in (weight, bias, mean, variance) if t is not None), input.dtype)
    statistics = {"running": (mean, variance), "momentum": momentum} if is_training else {
        "mean": mean, "variance": variance}
    return ExpectedForward(input, weight, bias, epsilon=epsilon, parameter_type=parameter_type, **statistics)


def check_forward(call, results, running):
    """Compares the results of aten::native_batch_norm, and the running statistics after it."""
    expected, (output, mean, inv_std) = expect_forward(*call), results
    expected.check(output=output)
    if not call[5]:
        assert mean.shape == inv_std.shape == (0,) and mean.dtype == inv_std.dtype == expected.parameter_type
        return
    expected.check(mean=mean, inv_std=inv_std)
    if running[0] is not None:
        expected.check(running_mean=running[0], running_variance=running[1])


def make_data(generator, shape, dtype, feature_dims=(1,), offset=0.3):
    """Values that tell channels apart and are not symmetric."""
    number = torch.zeros(shape)
    for dim in feature_dims:
        sizes = [-1 if other == dim % len(shape) else 1 for other in range(len(shape))]
        number = number * 7 + (torch.arange(shape[dim]) % 29).view(sizes)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (noise * (1 + 0.05 * (number % 29)) + offset + 0.02 * (number % 31)).to(dtype)


LAYOUTS = ("contiguous", "channels_last", "permuted", "sliced", "expanded")


def lay_out(tensor, layout, generator):
    """A tensor of the same values, or for `expanded` of one shape, elsewhere."""
    rank = tensor.dim()
    if layout == "channels_last" and rank >= 3:
        order = [0, *range(2, rank), 1]
        return tensor.permute(order).contiguous().permute([0, rank - 1, *range(1, rank - 1)])
    if layout == "permuted":
        order = torch.randperm(rank, generator=generator).tolist()
        return tensor.permute(order).contiguous().permute(np.argsort(order).tolist())
    if layout == "sliced":
        wide = tensor.new_zeros([*tensor.shape[:-1], 2 * tensor.shape[-1] + 1])
        wide[..., 1::2] = tensor
        return wide[..., 1::2]
    if layout == "expanded" and tensor.numel():
        return tensor.select(0, 0).unsqueeze(0).expand(tensor.shape)
    return tensor.contiguous()


def make_parameters(generator, sizes, dtype):
    """mean, variance and scale, of which no two channels have the same."""
    number = torch.arange(int(np.prod(sizes, dtype=np.int64))).reshape(sizes) % 29
    noise = 0.1 * torch.randn(sizes, generator=generator, dtype=torch.float64)
    return ((0.1 * number - 0.6 + noise).to(dtype), (0.4 + 0.07 * number).to(dtype), (0.5 + 0.03 * number).to(dtype))


def parameter_type_of(dtype, choose=random):
    """A type that PyTorch has for batch norms of `dtype`."""
    if dtype in (torch.float32, torch.float64):
        return dtype
    return choose.choice([dtype, torch.float32])
