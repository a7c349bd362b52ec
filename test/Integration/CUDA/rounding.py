"""rounding.py RUNNER DIR: kernels round once, to nearest even: midpoints of two numbers and their neighbours, subnormals,
overflow, NaN, and values of f64 that would be rounded twice through f32.

The gradient of a channel with factor 1 rounds grad_output to the type of grad_input. The expected bits come from
rational arithmetic in truncf.py. Prints `N executions, 0 failed`.
"""

import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Inputs"))
import truncf

PROGRAM = """
func.func @f(%x: tensor<{shape}x{source}>, %one: tensor<{channels}x{source}>) -> tensor<{shape}x{target}> {{
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%x : tensor<{shape}x{source}>)
      input(%x : tensor<{shape}x{source}>) mean(%one : tensor<{channels}x{source}>)
      inv_std(%one : tensor<{channels}x{source}>) {{statistics = #bngrad.statistics<global>}}
      : tensor<{shape}x{target}>, tensor<{channels}x{source}>, tensor<{channels}x{source}>
  return %dx : tensor<{shape}x{target}>
}}
"""
# Vectors, and single elements.
VECTORS, ELEMENTS = (64, 4, 128), (truncf.COUNT, 1)


def cases():
    for chip in ("sm_75", "sm_80", "sm_90"):
        for source in ("f32", "f64"):
            for shape in (VECTORS, ELEMENTS):
                yield chip, source, "bf16", shape
    for source in ("f32", "f64"):
        yield "sm_90", source, "f16", VECTORS


def main():
    runner, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    paths = {name: os.path.join(directory, f"{name}.npy") for name in ("x", "one", "dx")}
    executed = failed = 0
    for chip, source, target, shape in cases():
        program = PROGRAM.format(shape="x".join(map(str, shape)), channels=shape[1], source=source, target=target)
        with np.errstate(over="ignore"):
            values = truncf.make(source, target).reshape(shape)
        np.save(paths["x"], values)
        np.save(paths["one"], np.ones(shape[1], values.dtype))
        command = [runner, "-", "--target=cuda-emulator", f"--chip={chip}", f"--arg={paths['x']}",
                   f"--arg={paths['one']}", f"--result={paths['dx']}"]
        done = subprocess.run(command, input=program, capture_output=True, text=True,
                              env={**os.environ, "PTX_EMULATOR_CHIP": chip})
        executed += 1
        print(f"{chip} {'x'.join(map(str, shape))}: ", end="", flush=True)
        if done.returncode or done.stderr:
            failed += 1
            print(f"FAILED\n{done.stderr}")
        else:
            failed += truncf.check(source, target, values, np.load(paths["dx"])) > 0
    print(f"{executed} executions, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
