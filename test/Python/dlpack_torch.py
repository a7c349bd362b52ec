"""Tensors of PyTorch: types, layouts, aliasing, and tensors that are no plain memory.

REQUIRES: torch
RUN: %python -m pytest -q %s
"""

import bngrad
import numpy as np
import pytest
import torch


def make(dtype=torch.float32, shape=(4, 3, 5, 2)):
    generator = torch.Generator().manual_seed(1)
    dy, x = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    mean, inv_std = (torch.rand(shape[1], generator=generator) + 0.5 for _ in range(2))
    if dtype == torch.float64:
        mean, inv_std = mean.double(), inv_std.double()
    return dy, x, mean, inv_std


def numpy_results(dy, x, mean, inv_std):
    operands = (t.to(torch.float64).numpy() for t in (dy, x, mean, inv_std))
    dy, x, mean, inv_std = operands
    return bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("channels_last", [False, True])
def test_types_and_layouts(dtype, channels_last):
    dy, x, mean, inv_std = make(dtype)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    results = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)
    assert all(type(result) is torch.Tensor for result in results)
    assert results[0].dtype == dtype and results[0].stride() == x.stride()
    tolerance = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float32: 2e-5, torch.float64: 1e-12}[dtype]
    for result, expected in zip(results, numpy_results(dy, x, mean, inv_std)):
        assert np.abs(result.double().numpy() - expected).max() <= tolerance


def test_outputs_and_views():
    dy, x, mean, inv_std = make()
    expected = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)
    out = torch.empty(8, 3, 5, 2)[::2]
    results = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std, out=(out, None, None))
    assert results[0] is out and torch.equal(out, expected[0])
    expanded = torch.ones(()).expand(4, 3, 5, 2)
    results = bngrad.batch_norm_backward(expanded, x, mean, inv_std=inv_std)
    same = bngrad.batch_norm_backward(expanded.contiguous(), x, mean, inv_std=inv_std)
    assert all(torch.equal(a, b) for a, b in zip(results, same))
    mask = dy > 0
    results = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std, mask=mask)
    same = bngrad.batch_norm_backward(dy * mask, x, mean, inv_std=inv_std)
    assert all(torch.equal(a, b) for a, b in zip(results, same))


def test_versions_of_outputs():
    """Autograd notices that an output was written."""
    dy, x, mean, inv_std = make()
    sums = bngrad.batch_norm_backward_reduce(dy, x, mean)
    out = [torch.empty(4, 3, 5, 2), torch.empty(3), torch.empty(3), torch.empty(2, 3)]

    def check(tensors, call):
        versions = [tensor._version for tensor in tensors]
        factor = torch.ones((), requires_grad=True)
        products = [(factor * tensor).sum() for tensor in tensors]
        call()
        assert [tensor._version for tensor in tensors] == [version + 1 for version in versions]
        for product in products:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                product.backward()

    backward = lambda **options: bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std, **options)
    check(out[:3], lambda: backward(out=tuple(out[:3])))
    check([out[1]], lambda: backward(out=(None, out[1], None)))
    check([out[3]], lambda: bngrad.batch_norm_backward_reduce(dy, x, mean, out=out[3]))
    check([out[0]], lambda: bngrad.batch_norm_backward_elemt(dy, x, mean, sums, 40, inv_std=inv_std, out=out[0]))
    # The version is that of the whole tensor, and in place that of the operand.
    whole = torch.empty(8, 3, 5, 2)
    check([whole], lambda: backward(out=(whole[::2], None, None)))
    check([dy], lambda: backward(out=(dy, None, None)))
    # Nothing was written.
    version = out[0]._version
    with pytest.raises(bngrad.ShapeError):
        backward(out=(out[0], torch.empty(4), None))
    assert out[0]._version == version
    with torch.inference_mode():
        inference = torch.empty(3)
        backward(out=(None, inference, None))
    backward(out=(None, inference, None))


def test_results_outlive_the_call():
    dy, x, mean, inv_std = make(shape=(64, 3, 50, 20))
    kept = []
    for _ in range(20):
        kept.append(bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)[0])
    assert all(torch.equal(kept[0], other) for other in kept)
    assert len({other.data_ptr() for other in kept}) == 20


class Subclass(torch.Tensor):
    pass


def test_subclasses():
    dy, x, mean, inv_std = make()
    expected = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)
    scale = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    results = bngrad.batch_norm_backward(dy.as_subclass(Subclass), x, mean, inv_std=inv_std, scale=scale)
    assert all(torch.equal(a, b) for a, b in zip(results, expected))


def expect(kind, text, **changed):
    operands = dict(zip(("grad_output", "input", "mean", "inv_std"), make())) | changed
    with pytest.raises(kind, match=text):
        bngrad.batch_norm_backward(operands.pop("grad_output"), operands.pop("input"), operands.pop("mean"),
                                   **operands)


def test_errors():
    dy, x, mean, inv_std = make()
    expect(TypeError, "scale: expected a tensor that requires no gradient, got one that does",
           scale=torch.nn.Parameter(torch.ones(3)))
    expect(TypeError, "grad_output: expected a tensor of the values in its memory, got one with the negative bit",
           grad_output=torch.complex(dy, dy).conj().imag)
    expect(TypeError, "input: expected dtype .*, got int32", input=x.int())
    expect(TypeError, "mask: expected dtype bool, got uint8", mask=(x > 0).byte())
    expect(RuntimeError, "storage", grad_output=dy.to_sparse())
    expect(RuntimeError, "meta", grad_output=dy.to("meta"))


def test_transforms_are_errors():
    dy, x, mean, inv_std = make()
    for transform in (torch.func.grad, torch.vmap):
        with pytest.raises(Exception, match="requires no gradient|storage"):
            transform(lambda y: bngrad.batch_norm_backward(y, x, mean, inv_std=inv_std)[0].sum())(
                dy if transform is torch.func.grad else dy[None])


@pytest.mark.parametrize("name", ["grad_output", "input", "mean", "inv_std"])
@pytest.mark.parametrize("part", [0, 0.5])
def test_storages_that_were_resized(name, part):
    """As FSDP does it. DLPack does not tell the size of a storage."""
    operands = dict(zip(("grad_output", "input", "mean", "inv_std"), make()))
    storage = operands[name].untyped_storage()
    size = storage.nbytes()
    storage.resize_(int(size * part))
    expect(ValueError, f"{name}: expected (data, got null|a storage of at least {size} bytes, got {int(size * part)})",
           **{name: operands[name]})


@pytest.mark.parametrize("is_numpy, size", [(False, 0), (False, 1 << 24), (True, 2)])
def test_operands_that_another_one_resizes(is_numpy, size):
    """By code of Python that runs when that is read: after the others were."""
    operands = [tensor.double() for tensor in make()]

    class Resizing:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **options):
            if is_numpy:
                x.resize(size, refcheck=False)
            else:
                x.untyped_storage().resize_(size)
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return 1, 0

    x = np.array(operands[1].numpy(), order="C") if is_numpy else operands[1]
    message = ("an array that no other argument changes, got one that was resized or reshaped" if is_numpy else
               "a tensor that no other argument changes, got one that was resized" if size > 0 else
               f"a storage of at least {x.untyped_storage().nbytes()} bytes, got 0")
    with pytest.raises(ValueError, match=f"input: expected {message}"):
        bngrad.batch_norm_backward(operands[0], x, operands[2], inv_std=Resizing(operands[3]))


def test_a_storage_that_was_resized_under_a_view():
    dy, x, mean, inv_std = make()
    view = x[1:]
    x.untyped_storage().resize_(x.untyped_storage().nbytes() - 4)
    expect(ValueError, f"input: expected a storage of at least {4 * 120} bytes, got {4 * 119}", input=view,
           grad_output=dy[1:])
