"""Programs on tensors of PyTorch.

REQUIRES: python-compiler, torch
RUN: %python -m pytest -q %s
"""

import subprocess
import sys

import bngrad
import numpy as np
import pytest
import torch
from program_numerics import F32, check, make_data, make_program

FLOATS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients(dtype):
    """Within the bound of the reference, as numpy's are; results are tensors."""
    shape = (4, 3, 6)
    name, parameter = FLOATS[dtype], "f64" if dtype == torch.float64 else "f32"
    text = make_program(shape, 1, F32, F32, True).replace("xf32", "x#").replace("3x#", "3xf32")
    text = text.replace("?x?x?x#", f"?x?x?x{name}").replace("x#", f"x{parameter}")
    operands = [torch.from_numpy(array) for array in make_data(shape, 1, F32, F32)]
    wide = torch.float64 if parameter == "f64" else torch.float32
    operands = [operand.to(dtype if operand.dim() == 3 else wide) for operand in operands]
    results = bngrad.compile(text)(*operands)
    assert all(type(result) is torch.Tensor for result in results)
    assert [result.dtype for result in results] == [dtype, wide, wide]
    import ml_dtypes
    arrays = [value.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if value.dtype == torch.bfloat16
              else value.numpy() for value in (*results, *operands)]
    check(arrays[:3], arrays[3:], feature_dims=(1,))


ADD = """
func.func @add(%x: tensor<?x?xi32>, %n: i32) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xi32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xi32>
  %empty = tensor.empty(%rows, %columns) : tensor<?x?xi32>
  %all = linalg.fill ins(%n : i32) outs(%empty : tensor<?x?xi32>) -> tensor<?x?xi32>
  %sum = arith.addi %x, %all : tensor<?x?xi32>
  return %sum : tensor<?x?xi32>
}"""


FILL = """
func.func @fill(%x: memref<?xf32>, %y: memref<?xf32>, %value: f32) {
  linalg.fill ins(%value : f32) outs(%x : memref<?xf32>)
  return
}"""


def test_versions_of_memrefs():
    """Autograd notices that a memref may have been written."""
    x, y = torch.zeros(4), torch.zeros(4)
    product = (torch.ones((), requires_grad=True) * x).sum()
    bngrad.compile(FILL)(x, y, 3.0)
    assert torch.equal(x, torch.full((4,), 3.0)) and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    tensor = torch.arange(12, dtype=torch.int32).reshape(4, 3)
    bngrad.compile(ADD)(tensor, 5)
    assert tensor._version == 0


def test_integers_views_and_errors():
    program = bngrad.compile(ADD)
    x = torch.arange(12, dtype=torch.int32).reshape(4, 3)
    assert torch.equal(program(x, 5), x + 5)
    assert torch.equal(program(x[1:3], 5), x[1:3] + 5)
    assert program(x[:0], 5).shape == (0, 3)
    with pytest.raises(bngrad.StridesError, match="arg0: expected stride of dim 1 to be 1, got 3"):
        program(x.T, 5)
    with pytest.raises(bngrad.DtypeError, match="arg0: expected dtype i32, got i64"):
        program(x.long(), 5)
    with pytest.raises(bngrad.DtypeError, match="arg0: expected a tensor that requires no gradient"):
        bngrad.compile(ADD.replace("i32", "f32").replace("addi", "addf"))(torch.ones(2, 3, requires_grad=True), 1)
    kept = [program(x, i) for i in range(20)]
    assert all(torch.equal(result, x + i) for i, result in enumerate(kept))


@pytest.mark.parametrize("modules", ["bngrad, torch", "torch, bngrad"])
def test_order_of_imports(modules):
    """The compiler is loaded before PyTorch or after it."""
    program = f"""
import {modules}
text = '''{ADD}'''
if "torch" == "{modules}"[:5]:
    assert torch.relu(torch.ones(3)).sum() == 3
x = torch.arange(12, dtype=torch.int32).reshape(4, 3)
assert torch.equal(bngrad.compile(text)(x, 5), x + 5)
assert torch.nn.functional.batch_norm(torch.ones(2, 3), torch.zeros(3), torch.ones(3)).shape == (2, 3)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_numpy_and_torch_together():
    """Results are of the library of the first array."""
    text = """
func.func @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %sum = arith.addf %x, %y : tensor<4xf32>
  return %sum : tensor<4xf32>
}"""
    program = bngrad.compile(text)
    x, y = np.arange(4, dtype=np.float32), torch.ones(4)
    assert type(program(x, y)) is np.ndarray and type(program(y, x)) is torch.Tensor
    assert program(x, y).tolist() == program(y, x).tolist() == [1, 2, 3, 4]
