"""Compiled programs against long double: element types, layouts, static and dynamic shapes.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import itertools

import bngrad
import numpy as np
import pytest
from reference import NAMES, TYPES, Gradient

MLIR = dict(zip(TYPES, ("f16", "bf16", "f32", "f64")))
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def spell(shape, dtype, is_dynamic):
    return "x".join("?" if is_dynamic else str(size) for size in shape) + "x" + MLIR[dtype]


def make_program(shape, feature, dtype, parameter, is_dynamic, is_inverse=False, is_global=False):
    """A function that computes all gradients."""
    data, vector = spell(shape, dtype, is_dynamic), spell(shape[feature:feature + 1], parameter, is_dynamic)
    statistic = "inv_std" if is_inverse else "variance"
    options = [f"feature_dims = array<i64: {feature}>"]
    options += [] if is_inverse else ["epsilon = 1.0e-3 : f64"]
    options += ["statistics = #bngrad.statistics<global>"] if is_global else []
    results = f"tensor<{data}>, tensor<{vector}>, tensor<{vector}>"
    return f"""
func.func @gradient(%dy: tensor<{data}>, %x: tensor<{data}>, %scale: tensor<{vector}>, %mean: tensor<{vector}>,
                    %statistic: tensor<{vector}>) -> ({results}) {{
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<{data}>) input(%x : tensor<{data}>)
      scale(%scale : tensor<{vector}>) mean(%mean : tensor<{vector}>)
      {statistic}(%statistic : tensor<{vector}>) {{{", ".join(options)}}} : {results}
  return %dx, %dscale, %doffset : {results}
}}"""


def make_data(shape, feature, dtype, parameter, seed=1):
    random = np.random.default_rng(seed)
    channels = shape[feature]
    step = [1] * len(shape)
    step[feature] = channels
    # Each channel has a mean and a spread of its own.
    ramp = (np.arange(channels) * 0.25 + 0.5).reshape(step)
    x, dy = ((random.normal(size=shape) * ramp + offset * ramp).astype(dtype) for offset in (1, -0.25))
    scale, mean, statistic = (random.uniform(0.5, 2, channels).astype(parameter) for _ in range(3))
    return dy, x, scale, mean, statistic


def check(results, operands, **options):
    dy, x, scale, mean, statistic = operands
    name = "inv_std" if options.pop("is_inverse", False) else "variance"
    reference = Gradient(dy, x, mean, scale=scale, epsilon=0.0 if name == "inv_std" else 1e-3,
                         **{name: statistic}, **options)
    for name, result in zip(NAMES, results, strict=True):
        reference.check(name, result)


SHAPES = [((4, 3, 5, 2), 1), ((2, 7, 33), 2), ((65, 130), 1), ((1, 1), 0), ((3, 5, 1), 0)]


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("dtype, parameter", [(TYPES[0], F32), (TYPES[1], F32), (TYPES[1], TYPES[1]), (F32, F32),
                                              (F64, F64)], ids=str)
def test_gradients(dtype, parameter, is_dynamic):
    for shape, feature in SHAPES if dtype == F32 else SHAPES[:2]:
        operands = make_data(shape, feature, dtype, parameter)
        program = bngrad.compile(make_program(shape, feature, dtype, parameter, is_dynamic))
        results = program(*operands)
        assert [result.dtype for result in results] == [dtype, parameter, parameter]
        check(results, operands, feature_dims=(feature,))


def test_one_dynamic_program_for_many_shapes():
    program = bngrad.compile(make_program((0, 0, 0), 1, F32, F32, is_dynamic=True))
    for shape in [(1, 1, 1), (3, 4, 5), (2, 300, 17), (64, 3, 1001), (0, 3, 4), (2, 0, 4), (2, 3, 0)]:
        operands = make_data(shape, 1, F32, F32)
        check(program(*operands), operands, feature_dims=(1,))


@pytest.mark.parametrize("is_inverse, is_global", list(itertools.product([False, True], repeat=2)))
def test_statistics(is_inverse, is_global):
    shape = (4, 3, 10)
    operands = make_data(shape, 1, F32, F32)
    program = bngrad.compile(make_program(shape, 1, F32, F32, True, is_inverse, is_global))
    check(program(*operands), operands, feature_dims=(1,), is_inverse=is_inverse,
          statistics="global" if is_global else "batch")


@pytest.mark.parametrize("schedule", ["loops", "channels", "split"])
def test_schedules(schedule):
    shape = (4, 3, 17)
    operands = make_data(shape, 1, F32, F32)
    program = bngrad.compile(make_program(shape, 1, F32, F32, False), schedule=f"#bngrad.schedule<{schedule}>")
    assert [text.startswith(f"#bngrad.schedule<{schedule}") for text in program.schedule] == [True]
    check(program(*operands), operands, feature_dims=(1,))


def test_bits_do_not_depend_on_threads():
    """And are those of the ready kernels' function within the bound."""
    shape = (64, 16, 30, 30)
    operands = make_data(shape, 1, F32, F32)
    count = bngrad.get_num_threads()
    results = []
    try:
        for program in (bngrad.compile(make_program(shape, 1, F32, F32, is_dynamic)) for is_dynamic in (False, True)):
            results.clear()
            for threads in (1, 2, 3, 8):
                bngrad.set_num_threads(threads)
                results.append(program(*operands))
            assert all(np.array_equal(a, b) for other in results for a, b in zip(results[0], other))
            check(results[0], operands, feature_dims=(1,))
    finally:
        bngrad.set_num_threads(count)


def test_a_fused_neighbour():
    """A ReLU's mask and a residual beside the gradient, computed in one program."""
    shape = (3, 4, 6)
    text = """
func.func @block(%dy: tensor<?x4x?xf32>, %x: tensor<?x4x?xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>,
                 %mask: tensor<?x4x?xi1>, %skip: tensor<?x4x?xf32>) -> (tensor<?x4x?xf32>, tensor<4xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<?x4x?xf32>)
      input(%x : tensor<?x4x?xf32>) mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>)
      mask(%mask : tensor<?x4x?xi1>) {epsilon = 1.0e-3 : f64} : tensor<?x4x?xf32>, tensor<4xf32>, tensor<4xf32>
  %sum = arith.addf %dx, %skip : tensor<?x4x?xf32>
  return %sum, %dscale : tensor<?x4x?xf32>, tensor<4xf32>
}"""
    dy, x, _, mean, variance = make_data(shape, 1, F32, F32)
    mask, skip = x > 0.5, np.full(shape, 8, np.float32)
    total, grad_scale = bngrad.compile(text)(dy, x, mean, variance, mask, skip)
    reference = Gradient(dy, x, mean, variance=variance, epsilon=1e-3, mask=mask)
    reference.check("grad_scale", grad_scale)
    # The sum rounds once more.
    error = np.abs(total.astype(np.longdouble) - (reference.grad_input + 8))
    assert (error <= reference.bound("grad_input", F32) + np.abs(total) * 2.0**-23).all()
