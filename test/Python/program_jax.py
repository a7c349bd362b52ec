"""Programs on arrays of JAX, beside its compiler.

REQUIRES: python-compiler, jax
RUN: %python -m pytest -q %s
"""

import subprocess
import sys

import bngrad
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from program_numerics import F32, check, make_data, make_program


def test_gradients_beside_jit():
    shape = (4, 3, 6)
    operands = make_data(shape, 1, F32, F32)
    doubled = jax.jit(lambda x: x * 2)
    assert float(doubled(1.5)) == 3
    program = bngrad.compile(make_program(shape, 1, F32, F32, True))
    results = program(*map(jnp.asarray, operands))
    assert all(isinstance(result, jax.Array) for result in results)
    check([np.asarray(result) for result in results], operands, feature_dims=(1,))
    assert float(jax.jit(lambda x: x * 3)(1.5)) == 4.5


@pytest.mark.parametrize("modules", ["bngrad_compiler, jax", "jax, bngrad_compiler"])
def test_order_of_loading(modules):
    """XLA has an LLVM of its own; either may be loaded first."""
    program = f"""
import {modules}
import bngrad
import numpy as np
if "jax" == "{modules}"[:3]:
    assert float(jax.jit(lambda x: x * 2)(1.5)) == 3
text = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {{ return %x : tensor<?xf32> }}"
assert bngrad.compile(text)(np.ones(3, np.float32)).tolist() == [1, 1, 1]
assert float(jax.jit(lambda x: x * 3)(1.5)) == 4.5
assert bngrad.compile(text)(np.zeros(2, np.float32)).tolist() == [0, 0]
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_arrays_do_not_change():
    program = bngrad.compile("""
func.func @f(%x: memref<2xf32>) {
  %i = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  memref.store %one, %x[%i] : memref<2xf32>
  return
}""")
    with pytest.raises(bngrad.ParameterError, match="arg0: expected memory to write to, got a read-only array"):
        program(jnp.ones(2))


def test_modules_of_jax():
    """What JAX prints, in generic form, is compiled."""
    def loss(x, scale):
        return (x * scale[None]).sum(0)

    text = str(jax.jit(loss).lower(jnp.ones((2, 3)), jnp.ones(3)).compiler_ir().operation.get_asm(
        print_generic_op_form=True))
    with pytest.raises(bngrad.CompileError, match="expected an op of a registered dialect, got 'stablehlo"):
        bngrad.compile(text)
