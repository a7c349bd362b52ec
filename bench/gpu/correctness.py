"""Compares results with docs/mathematics.md in a wider type, by the bound of
docs/numerics.md. Works on arrays of numpy and of torch."""

import math

import numpy as np

import device
import items

SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 5e-324}


def reference(item, arguments, where, absolute):
    """Exact results and their A, each [N, C, S] or [C].

    `arguments` are in a wide type, data in the shape item.folded and
    per-channel values in a shape that broadcasts; `where(mask, value)` gives 0
    where a mask is false; `absolute` is |.|.
    """
    sizes, dims = item.folded
    if item.is_training:
        return reference_forward(item, arguments, absolute)
    dy, x, mean = (arguments[name] for name in ("grad_output", "input", "mean"))
    if "mask" in arguments:
        dy = where(arguments["mask"], dy)
    if "inv_std" in arguments:
        r = arguments["inv_std"]
    else:
        r = (arguments["variance"] + items.EPSILON) ** -0.5
    gain = arguments["scale"] * r if "scale" in arguments else r
    count = math.prod(sizes) // item.case.channels
    shape = mean.shape

    def total(values):
        return values.sum(dims).reshape(shape)

    centered = x - mean
    sum_dy, sum_dy_xmu = total(dy), total(dy * centered)
    size_dy, size_dy_xmu = total(absolute(dy)), total(absolute(dy * centered))
    if item.variant == "frozen":
        dx = dy * gain
        size_dx = absolute(dx)
    else:
        dx = gain * (dy - sum_dy / count - centered * (sum_dy_xmu / count * r * r))
        size_dx = absolute(gain) * (
            absolute(dy) + size_dy / count + absolute(centered) * (size_dy_xmu / count * r * r)
        )
    exact = (dx, sum_dy_xmu * r, sum_dy)
    return exact, (size_dx, size_dy_xmu * r, size_dy), count


def reference_forward(item, arguments, absolute):
    """As reference, of the forward pass (docs/numerics.md, section 10)."""
    sizes, dims = item.folded
    x, scale, offset = (arguments[name] for name in ("input", "scale", "offset"))
    count = math.prod(sizes) // item.case.channels
    unit = items.UNITS[item.parameter_type]
    factor = 4 * unit * (4 + math.log2(count + 1))

    def average(values):
        return (values.sum(dims) / count).reshape(scale.shape)

    mean = average(x)
    centered = x - mean
    variance = average(centered**2)
    shifted = variance + items.EPSILON
    r = shifted**-0.5
    size_variance = (variance**0.5 + 2 * factor * (mean**2 + variance) ** 0.5) ** 2
    relative = 1 + size_variance / shifted
    size_output = absolute(scale) * r * (
        absolute(centered) * relative + size_variance**0.5 + unit * absolute(mean)
    ) + absolute(offset)
    exact = (centered * (scale * r) + offset, mean, variance, r)
    terms = (size_output, size_variance**0.5 + unit * absolute(mean) / factor, size_variance, r * relative)
    return exact, terms, count


def bound(item, element_type, exact, terms, count, absolute):
    unit = items.UNITS[item.parameter_type]
    factor = 4 * unit * (4 + math.log2(count + 1))
    out = items.UNITS[element_type]
    return out * absolute(exact) + factor * terms + SMALLEST[element_type]


def make_arguments(item, seed):
    """Random arguments that differ from channel to channel, in the types of
    the function: data in the shape item.folded, i1 as 0 and 1."""
    random = np.random.default_rng([seed, *item.sizes, item.layout == "nchw"])
    sizes, dims = item.folded
    channel = [1 if dim in dims else size for dim, size in enumerate(sizes)]
    number = np.arange(item.case.channels).reshape(channel)
    values = {}
    values["mean"] = 0.25 + 0.5 * (number % 7)
    spread = 0.5 + 0.25 * (number % 5)
    values["input"] = values["mean"] + spread * random.standard_normal(sizes)
    values["grad_output"] = 0.125 * (number % 3) + random.uniform(-1, 1, sizes)
    values["offset"] = 0.5 - 0.25 * (number % 4)
    values["scale"] = random.uniform(0.5, 1.5, channel) * (1 - 2 * (number % 2))
    values["variance"] = spread**2 * random.uniform(0.9, 1.1, channel)
    values["inv_std"] = 1 / np.sqrt(values["variance"] + items.EPSILON)
    values["mask"] = random.uniform(0, 1, sizes) < 0.5
    return [
        device.to_bits(values[name], element_type) for name, element_type, _ in item.arguments
    ]


def compare(item, arguments, results):
    """The largest ratio of error to bound; numpy, in long double."""
    wide = {
        name: device.from_bits(array, element_type).astype(np.longdouble)
        for (name, element_type, _), array in zip(item.arguments, arguments)
    }
    exact, terms, count = reference(
        item, wide, lambda mask, value: np.where(mask != 0, value, 0), np.abs
    )
    worst = 0.0
    for (name, element_type, _), result, value, term in zip(
        item.results, results, exact, terms
    ):
        allowed = bound(item, element_type, value, term, count, np.abs).ravel()
        got = device.from_bits(result, element_type).astype(np.longdouble)
        error = np.abs(got - value.ravel()) / allowed
        # A NaN is also wrong.
        if not (error <= 1).all():
            first = int(np.argmax(~(error <= 1)))
            raise device.Error(
                f"{name}[{first}]: expected {float(value.ravel()[first]):.8g} +- "
                f"{float(allowed[first]):.2g}, got {float(got[first]):.8g}; "
                f"{int((~(error <= 1)).sum())} of {error.size} are wrong"
            )
        worst = max(worst, float(error.max(initial=0)))
    return worst


def check_small(library, item, path, shifts=(0, 1)):
    """Runs `item` with aligned and with shifted arrays; returns the ratio of error to bound."""
    gradient = device.Gradient(item, path)
    arguments = make_arguments(item, 1)
    worst = 0.0
    before = None
    for shift in shifts:
        with device.Buffers(library, item, arguments, shift) as buffers:
            library.check(gradient.bind(buffers.pointers)())
            results = buffers.download()
        worst = max(worst, compare(item, arguments, results))
        # Results of the same call are bitwise identical.
        if shift == 0 and before is not None:
            if not all(np.array_equal(a, b) for a, b in zip(before, results)):
                raise device.Error("expected the same bits again, got others")
        if shift == 0:
            before = results
    return worst
