"""Fake kernels and derivatives of torch.ops.bngrad.*.

The kernels themselves and the schemas are in libbngrad_torch.so.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad


def _check(condition: bool, message: str) -> None:
    torch._check(condition, lambda: message)


def _feature_dims(rank: int, feature_dims: Sequence[int]) -> list[int]:
    """Dims in 0 to rank - 1, from dims that may be negative."""
    _check(all(-rank <= dim < rank for dim in feature_dims),
           "feature_dims: expected dims of input, "
           f"{-rank} to {rank - 1}, got {list(feature_dims)}")
    return [dim % rank for dim in feature_dims]


def _reduced_dims(rank: int, feature_dims: Sequence[int]) -> list[int]:
    features = _feature_dims(rank, feature_dims)
    return [dim for dim in range(rank) if dim not in features]


def _spread(vector: Tensor, like: Tensor,
            feature_dims: Sequence[int]) -> Tensor:
    """A parameter as a tensor that broadcasts over `like`."""
    features = _feature_dims(like.dim(), feature_dims)
    return vector.reshape([
        like.shape[dim] if dim in features else 1 for dim in range(like.dim())
    ])


def _sum(value: Tensor, feature_dims: Sequence[int]) -> Tensor:
    """The sum over all dims except the feature dims."""
    dims = _reduced_dims(value.dim(), feature_dims)
    return value.sum(dims) if dims else value


# Fake kernels ---------------------------------------------------------------


def _check_data(grad_output: Tensor, input: Tensor, mean: Tensor,
                feature_dims: Sequence[int], **others: Tensor | None) -> None:
    # PyTorch calls the fake kernel if a single operand is on "meta".
    for name, tensor in {"grad_output": grad_output, "mean": mean,
                         **others}.items():
        if tensor is not None:
            _check(tensor.device == input.device,
                   f"{name}: expected the device of input, {input.device}, "
                   f"got {tensor.device}")
    _check(grad_output.shape == input.shape,
           f"grad_output: expected the shape of input, {tuple(input.shape)}, "
           f"got {tuple(grad_output.shape)}")
    _check(grad_output.dtype == input.dtype,
           f"grad_output: expected the dtype of input, {input.dtype}, "
           f"got {grad_output.dtype}")
    sizes = [input.shape[d] for d in _feature_dims(input.dim(), feature_dims)]
    _check(list(mean.shape) == sizes,
           f"mean: expected the sizes of the feature dims, {tuple(sizes)}, "
           f"got {tuple(mean.shape)}")


@torch.library.register_fake("bngrad::batch_norm_backward")
def _(grad_output, input, mean, scale=None, variance=None, inv_std=None,
      epsilon=0.0, mask=None, feature_dims=(1,), statistics="batch",
      output_mask=(True, True, True)):
    _check_data(grad_output, input, mean, feature_dims, scale=scale,
                variance=variance, inv_std=inv_std, mask=mask)
    _check((variance is None) != (inv_std is None),
           "expected either variance or inv_std")
    return (
        torch.empty_like(input) if output_mask[0] else None,
        mean.new_empty(mean.shape) if output_mask[1] else None,
        mean.new_empty(mean.shape) if output_mask[2] else None,
    )


@torch.library.register_fake("bngrad::batch_norm_backward_reduce")
def _(grad_output, input, mean, mask=None, feature_dims=(1,)):
    _check_data(grad_output, input, mean, feature_dims, mask=mask)
    is_f64 = input.dtype == torch.float64
    return mean.new_empty((2, *mean.shape),
                          dtype=torch.float64 if is_f64 else torch.float32)


@torch.library.register_fake("bngrad::batch_norm_backward_elemt")
def _(grad_output, input, mean, sums, count, scale=None, variance=None,
      inv_std=None, epsilon=0.0, mask=None, feature_dims=(1,)):
    _check_data(grad_output, input, mean, feature_dims, sums=sums, count=count,
                scale=scale, variance=variance, inv_std=inv_std, mask=mask)
    _check((variance is None) != (inv_std is None),
           "expected either variance or inv_std")
    return torch.empty_like(input)


# Derivatives ----------------------------------------------------------------
#
# With d the masked grad_output, c = input - mean, r the inv_std, h = c r,
# s the scale, M elements per channel and the mean of a channel written E():
#
#   grad_input = s r (d - E(d) - h E(d h))    batch statistics
#   grad_input = s r d                        global statistics
#   grad_scale = M E(d h), grad_offset = M E(d)
#
# Batch statistics are functions of input, as in ATen's double backward, so
# that mean and variance get no derivative of their own. Global ones are
# operands like all others.


def _accumulator(*tensors: Tensor | None) -> torch.dtype:
    is_f64 = any(t is not None and t.dtype == torch.float64 for t in tensors)
    return torch.float64 if is_f64 else torch.float32


def _unpack(value):
    """A primal and its tangent, which may be None. The level is always 0: in
    graphs of torch.compile, Python does not know the one that it has entered."""
    if not isinstance(value, Tensor):
        return value, None
    return forward_ad.unpack_dual(value, level=0)


def _has_tangent(values: Sequence) -> bool:
    return any(_unpack(value)[1] is not None for value in values)


class _Channels:
    """The values of one call that derivatives need, in the accumulator type."""

    def __init__(self, ctx, with_statistics: bool = True):
        grad_output, input, mean, scale, variance, inv_std, mask = (
            ctx.saved_tensors[:7])
        self.dims = ctx.feature_dims
        dtype = _accumulator(input, mean)
        self.dtype = dtype
        self.mask = mask
        self.grad_output = self.masked(grad_output.to(dtype))
        self.input = input.to(dtype)
        self.count = input.numel() // max(mean.numel(), 1)
        mean = mean.to(dtype)
        follows = torch.is_grad_enabled() or _has_tangent(ctx.saved_tensors)
        if with_statistics:
            inv_std = (inv_std.to(dtype) if inv_std is not None else
                       (variance.to(dtype) + ctx.epsilon).rsqrt())
        if ctx.statistics == "batch" and follows:
            mean, inv_std = self.follow_input(mean, inv_std)
        self.mean = mean
        self.centered = self.input - self.spread(mean)
        if with_statistics:
            self.inv_std = inv_std
            self.factor = (inv_std if scale is None else
                           inv_std * scale.to(dtype))

    def follow_input(self, mean: Tensor,
                     inv_std: Tensor) -> tuple[Tensor, Tensor]:
        """The same values as functions of input, for higher derivatives."""
        own = self.average(self.input)
        variance = self.average((self.input - self.spread(own)).square())
        rest = (inv_std**-2 - variance).detach()
        return (mean.detach() + (own - own.detach()), (variance + rest).rsqrt())

    def masked(self, value: Tensor) -> Tensor:
        return value if self.mask is None else torch.where(self.mask, value, 0)

    def spread(self, vector: Tensor) -> Tensor:
        return _spread(vector, self.input, self.dims)

    def sum(self, value: Tensor) -> Tensor:
        return _sum(value, self.dims)

    def average(self, value: Tensor) -> Tensor:
        return self.sum(value) / max(self.count, 1)

    def subtract_means(self, sums: Tensor, count: Tensor) -> Tensor:
        """d - E(d) - c r^2 E(d c), from sums over `count` elements."""
        means = sums.to(self.dtype) / count.to(self.dtype).clamp(min=1)
        slope = means[1] * self.inv_std.square()
        return (self.grad_output - self.spread(means[0]) -
                self.centered * self.spread(slope))

    def project(self, value: Tensor, normalized: Tensor) -> Tensor:
        """value - E(value) - h E(value h)."""
        slope = self.average(value * normalized)
        return (value - self.spread(self.average(value)) -
                normalized * self.spread(slope))


def _like(tensor: Tensor | None, value: Tensor) -> Tensor | None:
    return None if tensor is None else value.to(tensor.dtype)


def _setup_gradient(ctx, inputs, output):
    (grad_output, input, mean, scale, variance, inv_std, ctx.epsilon, mask,
     ctx.feature_dims, ctx.statistics, ctx.output_mask) = inputs
    ctx.save_for_backward(grad_output, input, mean, scale, variance, inv_std,
                          mask)


def _differentiate_gradient(ctx, of_input, of_scale, of_offset):
    grad_output, input, mean, scale, variance, inv_std = ctx.saved_tensors[:6]
    channels = _Channels(ctx)
    d, r, count = channels.grad_output, channels.inv_std, channels.count
    spread, is_batch = channels.spread, ctx.statistics == "batch"
    h = channels.centered * spread(r)
    wanted = ctx.needs_input_grad
    to_output = torch.zeros_like(d)
    # Derivatives with respect to h, r and scale.
    to_h = torch.zeros_like(d)
    to_r = to_scale = None
    if of_input is not None and ctx.output_mask[0]:
        a = of_input.to(channels.dtype)
        if is_batch:
            through = channels.project(a, h)
            mean_dh, mean_ah = channels.average(d * h), channels.average(a * h)
            to_h = -spread(channels.factor) * (a * spread(mean_dh) +
                                               d * spread(mean_ah))
        else:
            through = a
        to_output = to_output + spread(channels.factor) * through
        product = channels.sum(through * d)
        gain = 1 if scale is None else scale.to(channels.dtype)
        to_r, to_scale = gain * product, r * product
    if of_scale is not None and ctx.output_mask[1]:
        b = spread(of_scale.to(channels.dtype))
        to_output = to_output + b * h
        to_h = to_h + b * d
    if of_offset is not None and ctx.output_mask[2]:
        to_output = to_output + spread(of_offset.to(channels.dtype))
    to_input = None
    if wanted[1]:
        to_input = spread(r) * (channels.project(to_h, h)
                                if is_batch else to_h)
        if is_batch and to_r is not None:
            to_input = to_input - h * spread(r.square() * to_r / max(count, 1))
        to_input = to_input.to(input.dtype)
    if to_scale is not None and scale is not None:
        to_scale = to_scale.to(scale.dtype)
    to_mean = to_variance = to_inv_std = None
    if not is_batch:
        of_r = channels.sum(to_h * channels.centered)
        if to_r is not None:
            of_r = of_r + to_r
        to_mean = (-r * channels.sum(to_h)).to(mean.dtype)
        to_variance = _like(variance, -0.5 * r**3 * of_r)
        to_inv_std = _like(inv_std, of_r)
    return (channels.masked(to_output).to(grad_output.dtype), to_input, to_mean,
            to_scale if scale is not None else None, to_variance, to_inv_std,
            *(None,) * 5)




# sums = (sum of d, sum of d c): a function of grad_output, input and mean.


def _setup_sums(ctx, inputs, output):
    grad_output, input, mean, mask, ctx.feature_dims = inputs
    ctx.statistics, ctx.epsilon = "", 0.0
    ctx.save_for_backward(grad_output, input, mean, None, None, None, mask)


def _differentiate_sums(ctx, of_sums):
    grad_output, input, mean = ctx.saved_tensors[:3]
    channels = _Channels(ctx, with_statistics=False)
    first, second = of_sums[0], channels.spread(of_sums[1])
    to_output = channels.spread(first) + second * channels.centered
    to_input = second * channels.grad_output
    return (channels.masked(to_output).to(grad_output.dtype),
            to_input.to(input.dtype), -channels.sum(to_input).to(mean.dtype),
            None, None)




# grad_input = s r (d - S0 / n - c r^2 S1 / n): a function of all operands.


def _setup_elemt(ctx, inputs, output):
    (grad_output, input, mean, sums, count, scale, variance, inv_std,
     ctx.epsilon, mask, ctx.feature_dims) = inputs
    ctx.statistics = ""
    ctx.save_for_backward(grad_output, input, mean, scale, variance, inv_std,
                          mask, sums, count)


def _differentiate_elemt(ctx, of_input):
    (grad_output, input, mean, scale, variance, inv_std, _, sums,
     count) = ctx.saved_tensors
    channels = _Channels(ctx)
    spread, r = channels.spread, channels.inv_std
    dtype = channels.dtype
    a = of_input.to(dtype)
    means = sums.to(dtype) / count.to(dtype).clamp(min=1)
    slope = means[1] * r.square()
    inner = channels.subtract_means(sums, count)
    along = channels.sum(a * channels.centered)
    total = channels.sum(a)
    product = channels.sum(a * inner)
    gain = 1 if scale is None else scale.to(dtype)
    to_r = gain * product - 2 * channels.factor * r * means[1] * along
    to_sums = -torch.stack(
        (channels.factor * total, channels.factor * r.square() * along)
    ) / count.to(dtype).clamp(min=1)
    to_input = -spread(channels.factor * slope) * a

    return (
        channels.masked(spread(channels.factor) * a).to(grad_output.dtype),
        to_input.to(input.dtype),
        (channels.factor * slope * total).to(mean.dtype),
        to_sums.to(sums.dtype), None,
        _like(scale, r * product),
        _like(variance, -0.5 * r**3 * to_r),
        _like(inv_std, to_r), None, None, None)


# Registration ---------------------------------------------------------------
#
# In forward mode, PyTorch's own ops compute the formulas, with their derivatives.


def _gradient(ctx):
    input, mean = ctx.saved_tensors[1:3]
    channels = _Channels(ctx)
    d, h = channels.grad_output, channels.centered * channels.spread(
        channels.inv_std)
    inner = channels.project(d, h) if ctx.statistics == "batch" else d
    results = (channels.spread(channels.factor) * inner, channels.sum(d * h),
               channels.sum(d))
    return tuple(result.to(like.dtype) if wanted else None for
                 result, like, wanted in zip(results, (input, mean, mean),
                                             ctx.output_mask))


def _sums(ctx):
    channels = _Channels(ctx, with_statistics=False)
    d = channels.grad_output
    return torch.stack((channels.sum(d), channels.sum(
        d * channels.centered))).to(_accumulator(ctx.saved_tensors[1]))


def _elemt(ctx):
    channels = _Channels(ctx)
    result = channels.spread(channels.factor) * channels.subtract_means(
        *ctx.saved_tensors[7:])
    return result.to(ctx.saved_tensors[1].dtype)


class _Inputs:
    """The values that the functions above read, without a node of autograd."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        pass


_library = torch.library.Library("bngrad", "FRAGMENT")


def _register(name: str, setup, differentiate, formula) -> None:
    torch.library.register_autograd("bngrad::" + name, differentiate,
                                    setup_context=setup)
    schema = getattr(torch.ops.bngrad, name).default._schema
    defaults = [argument.default_value for argument in schema.arguments]
    for key in ("AutogradCPU", "AutogradCUDA", "AutogradMeta"):
        _register_forward(name, key, defaults, setup, formula)


def _register_forward(name: str, key: str, defaults: list, setup,
                      formula) -> None:
    reverse = torch.library.get_kernel("bngrad::" + name, key)

    def kernel(keyset, *arguments):
        if not _has_tangent(arguments):
            return reverse.call_boxed(keyset, *arguments)
        with torch.no_grad():  # checks the operands
            reverse.call_boxed(keyset, *(_unpack(each)[0] for each in arguments))
        inputs = _Inputs()
        setup(inputs, (*arguments, *defaults[len(arguments):]), None)
        return formula(inputs)

    _library.impl(name, kernel, key, with_keyset=True)


_register("batch_norm_backward", _setup_gradient, _differentiate_gradient,
          _gradient)
_register("batch_norm_backward_reduce", _setup_sums, _differentiate_sums,
          _sums)
_register("batch_norm_backward_elemt", _setup_elemt, _differentiate_elemt,
          _elemt)
