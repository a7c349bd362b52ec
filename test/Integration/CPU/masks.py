"""masks.py RUNNER DIR: a gradient with a mask of i1 has the bits of one whose grad_output is 0 where the mask is false,
whatever the length of the registers, also for rows that do not fill them. Prints `N programs, 0 differ`.
"""

import itertools
import os
import subprocess
import sys

import numpy as np

PROGRAM = """func.func @f(%dy: tensor<?x?x?x{type}>, %x: tensor<?x?x?x{type}>, %mean: tensor<?xf32>, %inv_std: tensor<?xf32>{argument})
    -> (tensor<?x?x?x{type}>, tensor<?xf32>, tensor<?xf32>) {{
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?x{type}>) input(%x : tensor<?x?x?x{type}>)
      mean(%mean : tensor<?xf32>) inv_std(%inv_std : tensor<?xf32>){operand} : tensor<?x?x?x{type}>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : tensor<?x?x?x{type}>, tensor<?xf32>, tensor<?xf32>
}}
"""
MASK = {"argument": ", %mask: tensor<?x?x?xi1>", "operand": " mask(%mask : tensor<?x?x?xi1>)"}


def run(runner, directory, name, text, arrays, schedule):
    program = os.path.join(directory, f"{name}.mlir")
    with open(program, "w") as file:
        file.write(text)
    command = [runner, program, f"--schedule=#bngrad.schedule<{schedule}>"]
    for number, array in enumerate(arrays):
        path = os.path.join(directory, f"{name}{number}.npy")
        np.save(path, array)
        command.append(f"--arg={path}")
    results = [os.path.join(directory, f"{name}.result{number}.npy") for number in range(3)]
    subprocess.run([*command, *(f"--result={path}" for path in results)], check=True)
    return [open(path, "rb").read() for path in results]


def main():
    runner, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(1)
    programs = differ = 0
    for bits, type, shape in itertools.product((128, 256, 512), ("f32", "f16"), ((4, 3, 9), (2, 3, 100))):
        dtype = {"f32": np.float32, "f16": np.float16}[type]
        dy, x = (random.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
        mean, inv_std = (random.uniform(0.5, 2, shape[1]).astype(np.float32) for _ in range(2))
        mask = random.uniform(size=shape) < 0.7
        schedule = f"channels, vector_bits = {bits}, fma = true"
        masked = run(runner, directory, "masked", PROGRAM.format(type=type, **MASK), (dy, x, mean, inv_std, mask), schedule)
        zeros = run(runner, directory, "zeros", PROGRAM.format(type=type, argument="", operand=""),
                    (np.where(mask, dy, dtype(0)), x, mean, inv_std), schedule)
        programs += 1
        if masked != zeros:
            differ += 1
            print(f"differs: {bits} bits, {type}, {shape}")
    print(f"{programs} programs, {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
