# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""torch.ops.bngrad.*: values, layouts, derivatives, errors, transformations."""

import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_reference as reference
from torch_operands import RandomOperands, make_operands

import bngrad.torch  # noqa: F401

backward = torch.ops.bngrad.batch_norm_backward
reduce = torch.ops.bngrad.batch_norm_backward_reduce
elemt = torch.ops.bngrad.batch_norm_backward_elemt
CONFIGURATIONS = 1000 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 300


class Case(RandomOperands):
    """Random operands of one call."""

    def __init__(self, seed):
        super().__init__(seed, sizes=[0, 1, 2, 3, 5, 8, 17, 33] * 5 + [700], most=50000, offsets=[-0.7],
                         parameter_types=reference.DTYPES[:3])
        self.grad_output = self.lay_out(self.make_data())
        self.statistic["scale"] = self.scale
        mask = self.lay_out(torch.rand(self.shape, generator=self.generator) < 0.7)
        self.options = {"mask": self.choose.choice([mask, None]), "feature_dims": self.feature_dims}
        self.statistics = self.choose.choice(["batch", "global"])

    @property
    def data(self):
        return self.grad_output, self.input, self.mean


@pytest.mark.parametrize("seeds", [range(start, start + CONFIGURATIONS // 10)
                                   for start in range(0, CONFIGURATIONS, CONFIGURATIONS // 10)],
                         ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_random_configurations(seeds):
    for seed in seeds:
        case = Case(seed)
        options = case.statistic | case.options | {"statistics": case.statistics}
        results = backward(*case.data, **options)
        reference.Expected(*case.data, **options).check_gradients(*results)
        assert results[0].stride() == torch.empty_like(case.input).stride(), seed
        sums = reduce(*case.data, **case.options)
        reference.Expected(*case.data, **case.options).check_sums(sums)
        # Those of several processes.
        given, count = sums * 3 + 0.5, 3 * max(case.input.numel() // max(case.mean.numel(), 1), 1) + 1
        grad_input = elemt(*case.data, given, torch.tensor(count), **case.statistic, **case.options)
        expected = reference.Expected(*case.data, **case.statistic, **case.options, sums=given, count=count)
        expected.check_gradients(grad_input, None, None)


def operands(dtype=torch.float64, shape=(4, 3, 5, 2), seed=0):
    grad_output, input, mean, variance, scale = make_operands(dtype, shape, seed=seed)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed + 1)) < 0.7
    return grad_output.requires_grad_(), input.requires_grad_(), mean, variance, scale.requires_grad_(), mask


@pytest.mark.parametrize("wanted", [w for w in range(1, 7)])
def test_output_mask(wanted):
    grad_output, input, mean, variance, scale, _ = operands(torch.float32)
    output_mask = [bool(wanted & 1), bool(wanted & 2), bool(wanted & 4)]
    every = backward(grad_output, input, mean, variance=variance, scale=scale)
    some = backward(grad_output, input, mean, variance=variance, scale=scale, output_mask=output_mask)
    for is_wanted, result, expected in zip(output_mask, some, every):
        assert torch.equal(result, expected) if is_wanted else result is None


@pytest.mark.parametrize("memory_format, shape", [(torch.channels_last, (4, 3, 5, 2)),
                                                  (torch.channels_last_3d, (4, 3, 5, 2, 3))])
def test_channels_last_is_kept(memory_format, shape):
    grad_output, input, mean, variance, scale, mask = operands(torch.float32, shape)
    last = input.detach().to(memory_format=memory_format)
    result = backward(grad_output.detach(), last, mean, variance=variance, mask=mask)[0]
    assert result.is_contiguous(memory_format=memory_format)
    torch.testing.assert_close(result, backward(grad_output, input, mean, variance=variance, mask=mask)[0])


def test_negative_feature_dims():
    grad_output, input, mean, variance, scale, _ = operands(torch.float32)
    assert torch.equal(backward(grad_output, input, mean, variance=variance, feature_dims=[-3])[0],
                       backward(grad_output, input, mean, variance=variance)[0])


# Transformations -------------------------------------------------------------

MODES = [{}, {"statistics": "global"}, {"mask": True}, {"scale": False}, {"output_mask": [True, False, False]},
         {"output_mask": [False, True, True]}]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_opcheck(mode):
    grad_output, input, mean, variance, scale, mask = operands(torch.float32)
    options = dict(mode) | {"scale": scale if mode.get("scale", True) else None}
    options["mask"] = mask if mode.get("mask") else None
    torch.library.opcheck(backward.default, (grad_output, input, mean), options | {"inv_std": variance})


@pytest.mark.parametrize("has_mask", [False, True])
def test_opcheck_of_halves(has_mask):
    grad_output, input, mean, variance, scale, mask = operands(torch.float32)
    options = {"mask": mask if has_mask else None}
    torch.library.opcheck(reduce.default, (grad_output, input, mean), options)
    sums = reduce(grad_output, input, mean).detach().requires_grad_()
    torch.library.opcheck(elemt.default, (grad_output, input, mean, sums, torch.tensor(40)),
                          options | {"scale": scale, "variance": variance, "epsilon": 1e-3})


@pytest.mark.parametrize("statistics", ["batch", "global"])
@pytest.mark.parametrize("has_mask", [False, True])
def test_derivatives(statistics, has_mask):
    """First and second derivatives of the gradient, so third of a batch norm."""
    grad_output, input, mean, variance, scale, mask = operands()

    def function(grad_output, input, scale):
        own_mean, own_variance = mean, variance
        if statistics == "batch":
            own_mean, own_variance = input.mean((0, 2, 3)), input.var((0, 2, 3), correction=0)
        return backward(grad_output, input, own_mean, scale=scale, variance=own_variance, epsilon=1e-2,
                        mask=mask if has_mask else None, statistics=statistics)

    assert torch.autograd.gradcheck(function, (grad_output, input, scale))
    assert torch.autograd.gradgradcheck(function, (grad_output, input, scale))


def test_derivatives_of_global_statistics():
    grad_output, input, mean, variance, scale, mask = operands(shape=(3, 2, 2))
    mean.requires_grad_(), variance.requires_grad_()
    for name in ("variance", "inv_std"):
        for output_mask in ([True, True, True], [False, True, True]):
            def function(grad_output, input, mean, statistic, scale):
                results = backward(grad_output, input, mean, scale=scale, mask=mask, statistics="global",
                                   output_mask=output_mask, **{name: statistic})
                return tuple(result for result in results if result is not None)

            data = grad_output, input, mean, variance, scale
            assert torch.autograd.gradcheck(function, data, check_forward_ad=True)
            assert torch.autograd.gradgradcheck(function, data, check_fwd_over_rev=True)


def test_derivatives_of_halves():
    grad_output, input, mean, variance, scale, mask = operands()
    mean.requires_grad_(), variance.requires_grad_()
    check = lambda function, *arguments: (torch.autograd.gradcheck(function, arguments) and
                                          torch.autograd.gradgradcheck(function, arguments))
    assert check(lambda *data: reduce(*data, mask=mask), grad_output, input, mean)
    sums = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    count = torch.tensor(57)
    assert check(lambda g, x, m, s, scale, variance: elemt(g, x, m, s, count, scale=scale, variance=variance,
                                                           epsilon=0.1, mask=mask),
                 grad_output, input, mean, sums, scale, variance)
    assert check(lambda g, x, r: elemt(g, x, mean, sums, count, inv_std=r), grad_output, input, variance)


def formula(grad_output, input, scale, mask, statistics, mean=None, variance=None):
    """The gradient as a function of PyTorch's ops."""
    dims, spread = (0, 2, 3), lambda value: value[:, None, None]
    if statistics == "batch":
        mean, variance = input.mean(dims), input.var(dims, correction=0)
    d = torch.where(mask, grad_output, 0)
    r = (variance + 1e-2).rsqrt()
    h = (input - spread(mean)) * spread(r)
    inner = d
    if statistics == "batch":
        inner = d - spread(d.mean(dims)) - h * spread((d * h).mean(dims))
    return spread(scale * r) * inner, (d * h).sum(dims), d.sum(dims)


@pytest.mark.parametrize("statistics", ["batch", "global"])
def test_forward_mode(statistics):
    """torch.func.jvp, of tensors that require gradients and of others, and dual numbers."""
    grad_output, input, mean, variance, scale, mask = operands()
    if statistics == "batch":
        mean, variance = input.detach().mean((0, 2, 3)), input.detach().var((0, 2, 3), correction=0)
    own = lambda *data: backward(*data[:2], mean, scale=data[2], variance=variance, epsilon=1e-2, mask=mask,
                                 statistics=statistics)
    other = lambda *data: formula(*data, mask, statistics, mean, variance)
    data = grad_output, input, scale
    tangents = tuple(torch.cos(torch.arange(value.numel()).double()).view_as(value) for value in data)
    for operands_ in (data, tuple(value.detach() for value in data)):
        for wanted in ((0, 1, 2), (0,), (1,), (2,)):
            def along(function, *values):
                every = list(operands_)
                for index, value in zip(wanted, values):
                    every[index] = value
                return function(*every)
            arguments = [tuple(values[index] for index in wanted) for values in (operands_, tangents)]
            results, expected = (torch.func.jvp(lambda *values: along(function, *values), *arguments)
                                 for function in (own, other))
            for one, two in zip((*results[0], *results[1]), (*expected[0], *expected[1])):
                torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        duals = [torch.autograd.forward_ad.make_dual(*pair) for pair in zip(data, tangents)]
        for one, two in zip(own(*duals), other(*duals)):
            torch.testing.assert_close(*(torch.autograd.forward_ad.unpack_dual(each).tangent for each in (one, two)),
                                       rtol=1e-9, atol=1e-9)


def test_forward_mode_of_types():
    """Tangents have the type of their result."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        generator = torch.Generator().manual_seed(0)
        grad_output, input, tangent = (reference.make_data(generator, (8, 3, 5), dtype) for _ in range(3))
        mean, variance = input.float().mean((0, 2)), input.float().var((0, 2), correction=0)
        function = lambda d: backward(d, input, mean, variance=variance)
        _, tangents = torch.func.jvp(function, (grad_output,), (tangent,))
        # It is linear in grad_output.
        for one, other in zip(tangents, function(tangent)):
            assert one.dtype == other.dtype
            scale = 1 + float(other.abs().max())
            torch.testing.assert_close(one, other, rtol=0, atol=scale * (1e-5 if one.dtype == torch.float32 else 2e-2))


def test_forward_mode_of_derivatives():
    grad_output, input, mean, variance, scale, mask = operands(shape=(3, 2, 2, 1))

    def function(grad_output, input, scale):
        return backward(grad_output, input, input.mean((0, 2, 3)), scale=scale, epsilon=1e-2, mask=mask,
                        variance=input.var((0, 2, 3), correction=0))

    check = lambda function, *data: (torch.autograd.gradcheck(function, data, check_forward_ad=True) and
                                     torch.autograd.gradgradcheck(function, data, check_fwd_over_rev=True))
    assert check(function, grad_output, input, scale)
    mean.requires_grad_(), variance.requires_grad_()
    assert check(lambda *data: reduce(*data, mask=mask), grad_output, input, mean)
    sums = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    assert check(lambda g, x, m, s, scale, v: elemt(g, x, m, s, torch.tensor(57), scale=scale, variance=v, mask=mask),
                 grad_output, input, mean, sums, scale, variance)
    # A Hessian-vector product, forward over reverse.
    data = grad_output, input, scale
    products = []
    for each in (function, lambda *data: formula(*data, mask, "batch")):
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(value, value.detach().sin()) for value in data]
            loss = sum(result.pow(3).sum() for result in each(*duals))
            gradients = torch.autograd.grad(loss, duals, create_graph=True)
            products.append([torch.autograd.forward_ad.unpack_dual(value).tangent for value in gradients])
    for one, two in zip(*products):
        torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    grad_output, input, mean, variance, scale, mask = operands(torch.float32)
    function = lambda *data: backward(*data, scale=scale, inv_std=variance, mask=mask)
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
    for result, expected in zip(compiled(grad_output, input, mean), function(grad_output, input, mean)):
        assert torch.equal(result, expected)


def halves():
    """Functions of input, with the ops beside a factor, for each op."""
    grad_output, _, mean, variance, scale, mask = (tensor.detach() for tensor in operands())
    sums = reduce(grad_output, operands()[1].detach(), mean)
    return {
        "backward": lambda x: backward(grad_output, x, mean, scale=scale, variance=variance, epsilon=1e-2, mask=mask)[0] * x,
        "reduce": lambda x: reduce(grad_output, x, mean, mask=mask) * x.sum(),
        "elemt": lambda x: elemt(grad_output, x, mean, sums, torch.tensor(40), scale=scale, inv_std=variance) * x,
    }


@pytest.mark.parametrize("name", ["backward", "reduce", "elemt"])
def test_forward_mode_in_graphs(name):
    """Graphs have the same tangents, and results with tangents may be results of the graph."""
    function, x = halves()[name], operands()[1].detach()
    tangent = torch.cos(x)

    def dual(x, tangent):
        with torch.autograd.forward_ad.dual_level():
            return tuple(torch.autograd.forward_ad.unpack_dual(function(torch.autograd.forward_ad.make_dual(x, tangent))))

    class Module(torch.nn.Module):

        def forward(self, x, tangent):
            return torch.func.jvp(function, (x,), (tangent,))

    expected = Module()(x, tangent)
    assert float(expected[1].abs().max()) > 1e-3
    few = x[:2, :, :1, :1]
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        for along in (Module(), dual):
            torch.testing.assert_close(tuple(torch.compile(along, backend=backend)(x, tangent)), expected)
    torch.testing.assert_close(tuple(torch.export.export(Module(), (x, tangent), strict=False).module()(x, tangent)), expected)
    if name == "reduce":  # the others have operands of another shape
        other = lambda x: reduce(x, x, x.mean((0, 2, 3)))
        torch.testing.assert_close(torch.compile(torch.func.jacfwd(other), backend="eager")(few),
                                   torch.func.jacfwd(other)(few))


def test_forward_mode_on_meta():
    data = [tensor.detach().to("meta") for tensor in operands()[:4]]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(data[0], torch.empty_like(data[0]))
        for result in backward(dual, data[1], data[2], variance=data[3]):
            tangent = torch.autograd.forward_ad.unpack_dual(result).tangent
            assert tangent.device.type == "meta" and tangent.shape == result.shape


def test_export():
    grad_output, input, mean, variance, _, _ = (tensor.detach() for tensor in operands(torch.float32))

    class Module(torch.nn.Module):

        def forward(self, grad_output, input, mean, variance):
            return backward(grad_output, input, mean, variance=variance, epsilon=1e-5)

    exported = torch.export.export(Module(), (grad_output, input, mean, variance))
    assert "bngrad.batch_norm_backward" in str(exported.graph)
    for result, expected in zip(exported.module()(grad_output, input, mean, variance),
                                Module()(grad_output, input, mean, variance)):
        assert torch.equal(result, expected)


def test_meta_and_autocast():
    grad_output, input, mean, variance, _, _ = (tensor.detach() for tensor in operands(torch.float32))
    on_meta = backward(*(tensor.to("meta") for tensor in (grad_output, input, mean)), variance=variance.to("meta"))
    assert [tensor.device.type for tensor in on_meta] == ["meta"] * 3
    with torch.autocast("cpu", torch.bfloat16):
        results = backward(grad_output.bfloat16(), input.bfloat16(), mean, variance=variance)
    assert [tensor.dtype for tensor in results] == [torch.bfloat16, torch.float32, torch.float32]


# Threads and errors ----------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 5, 33, 17), (2, 3, 200, 200), (64, 40), (3, 1, 100000)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_threads_do_not_change_bits(shape, layout):
    generator = torch.Generator().manual_seed(1)
    data = [reference.lay_out(reference.make_data(generator, shape, torch.float32), layout, generator)
            for _ in range(2)]
    mean, variance, scale = reference.make_parameters(generator, shape[1:2], torch.float32)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3, 4):
            torch.set_num_threads(count)
            results.append(backward(*data, mean, scale=scale, variance=variance))
            results[-1] += (reduce(*data, mean), elemt(*data, mean, reduce(*data, mean), torch.tensor(10**6),
                                                       scale=scale, inv_std=variance))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_errors():
    g, x, m, v, s, mask = (tensor.detach() for tensor in operands(torch.float32))
    cases = [
        (lambda: backward(g, x, m), "expected either variance or inv_std, got none"),
        (lambda: backward(g, x, m, variance=v, inv_std=v), "expected either variance or inv_std, got both"),
        (lambda: backward(g[:2], x, m, variance=v), "grad_output: expected dim 0 .* 4, got 2"),
        (lambda: backward(g.double(), x, m, variance=v), "grad_output: expected the dtype of input, f32, got f64"),
        (lambda: backward(g.long(), x.long(), m, variance=v), "grad_output: expected dtype .* got int64"),
        (lambda: backward(g, x, m[:2], variance=v), "mean: expected dim 0 .* 3, got 2"),
        (lambda: backward(g, x, m, variance=v.double()), "^variance: expected the dtype of .* got f64"),
        (lambda: backward(g, x, m, inv_std=v[:2]), "^inv_std: expected dim 0 .* 3, got 2"),
        (lambda: backward(g, x, m, variance=v, output_mask=[True]), "^output_mask: expected 3 values, got 1"),
        (lambda: backward(g, x, m, variance=v, epsilon=-1.0), "expected epsilon .* got -1"),
        (lambda: backward(g, x, m, variance=v, statistics="own"), 'expected "batch" or "global", got "own"'),
        (lambda: backward(g, x, m, variance=v, feature_dims=[4]), "feature_dims: .* -4 to 3, got 4"),
        (lambda: backward(g, x, m, variance=v, feature_dims=[]), "feature_dims: expected 1 to 8 dims, got 0"),
        (lambda: backward(g, x, m, variance=v, feature_dims=[2, 1]), "ascending"),
        (lambda: backward(g, x, m, variance=v, mask=mask.float()), "mask: expected dtype bool, got f32"),
        (lambda: backward(g, x, m, variance=v, output_mask=[False] * 3), "to be wanted, got none"),
        (lambda: backward(g, x, m.to("meta"), variance=v), "mean: expected the device of input, cpu, got meta"),
        (lambda: backward(g, x, m, variance=v.to("meta")), "variance: expected the device of input, cpu, got meta"),
        (lambda: reduce(g, x, m, mask=mask.to("meta")), "mask: expected the device of input, cpu, got meta"),
        (lambda: elemt(g, x, m, torch.zeros(2, 3), torch.tensor(1, device="meta"), variance=v),
         "count: expected the device of input, cpu, got meta"),
        (lambda: reduce(g, x, m[:2]), "mean: expected"),
        (lambda: elemt(g, x, m, torch.zeros(2, 3), torch.tensor(1.0), variance=v), "count: expected .* int64"),
        (lambda: elemt(g, x, m, torch.zeros(3, 3), torch.tensor(1), variance=v), "sums: expected"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()
    # In forward mode as well.
    with torch.autograd.forward_ad.dual_level():
        g, x, m = (torch.autograd.forward_ad.make_dual(value, value.cos()) for value in (g, x, m))
        for call, message in cases:
            with pytest.raises(RuntimeError, match=message):
                call()


@pytest.mark.parametrize("name", ["grad_output", "input", "mean", "inv_std", "mask"])
def test_storages_that_were_resized(name):
    """As FSDP does it: an error instead of what is in memory."""
    shape = (4, 3, 5, 2)
    operands = {"grad_output": torch.rand(shape), "input": torch.rand(shape), "mean": torch.rand(3),
                "inv_std": torch.rand(3), "mask": torch.ones(shape, dtype=torch.bool)}
    size = operands[name].untyped_storage().nbytes()
    operands[name].untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=f"{name}: expected a storage of at least {size} bytes, got 0"):
        torch.ops.bngrad.batch_norm_backward(operands.pop("grad_output"), operands.pop("input"), operands.pop("mean"),
                                             **operands)


def test_halves_with_storages_that_were_resized():
    dy, x, mean = torch.rand(4, 3), torch.rand(4, 3), torch.rand(3)
    sums = torch.ops.bngrad.batch_norm_backward_reduce(dy, x, mean)
    count, inv_std = torch.tensor([4]), torch.ones(3)
    for name, tensor in (("sums", sums), ("count", count)):
        tensor.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=f"{name}: expected a storage of at least"):
            torch.ops.bngrad.batch_norm_backward_elemt(dy, x, mean, sums, count, inv_std=inv_std)
        tensor.untyped_storage().resize_(64)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="input: expected a storage of at least 48 bytes, got 0"):
        torch.ops.bngrad.batch_norm_backward_reduce(dy, x, mean)
