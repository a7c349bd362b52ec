"""moments.py RUNNER DIR [COUNT]: mean and squares of training, under each schedule of the CPU.

Schedules compute both in one pass, block by block. The sizes are around those of the blocks, and the data are such that
an error in a block's center or in joining blocks shows: a ramp, whose blocks have different means, or a first element far
from all others; some channels are constant, and their output must be the offset exactly. Each program must meet the
bounds of `--check` and give the same bits for any number of threads. Prints the seed and `N executions, 0 failed`.
"""

import os
import subprocess
import sys

import numpy as np

SEED = 20261129
THREADS = [1, 2, 3, 7]
# By kind of schedule: loops [N, C, S], the channels of which are dim 1, or [N, C].
SHAPES = {
    "channels": [(1, 3, 1), (2, 3, 4095), (3, 2, 4097), (5, 3, 196), (40, 2, 333), (2, 3, 9000), (1, 2, 12289)],
    "split": [(1, 2, 100), (2, 3, 16383), (3, 2, 16385), (1, 1, 70000), (4, 2, 20000)],
    "tiles": [(16, 64, 7), (33, 40, 49), (40, 5, 1)],
    "sizes": [(4, 9, 500), (1, 2, 40000), (32, 256, 49)],
    "rows": [(1, 5), (27, 4), (300, 3), (8200, 64), (701, 129), (90, 1030), (2500, 17), (70000, 2)],
    "loops": [(7, 3, 50), (130, 6)],
}


def data(random, shape):
    """(values of the input, offset): channel c is a ramp, has a far first element, or is constant."""
    n, c, *_ = shape
    values = random.normal(size=shape)
    reduced = np.prod(shape) // c
    ramp = np.arange(reduced).reshape(np.moveaxis(values, 1, 0).shape[1:]) / reduced
    for channel in range(c):
        part = values[:, channel]
        kind = (channel + int(random.integers(3))) % 3
        if kind == 0:
            part[...] = 30 + 20 * ramp + 0.01 * part
        elif kind == 1:
            part += 3000
            part.flat[0] = 0
        else:
            part[...] = np.float32(0.1) * (1 + channel)
    return values.astype(np.float32), random.uniform(-1, 1, c).astype(np.float32)


def program(shape, element, is_dynamic):
    c = "?" if is_dynamic else shape[1]
    x = "tensor<" + "".join(f"{'?' if is_dynamic else s}x" for s in shape) + f"{element}>"
    p = f"tensor<{c}xf32>"
    # The conversion is fused, so that every element type reads the same file.
    return f"""func.func @f(%x: tensor<{x[7:].rsplit('x', 1)[0]}xf32>, %offset: {p}) -> ({x}, {p}, {p}, {p}) {{
  %input = arith.{'truncf' if element != 'f32' else 'negf'} %x : {x.replace(element, 'f32')}{f' to {x}' if element != 'f32' else ''}
  %0:4 = bngrad.batch_norm_training input(%input : {x}) offset(%offset : {p}) {{epsilon = 1.0e-3 : f64}} : {x}, {p}, {p}, {p}
  return %0#0, %0#1, %0#2, %0#3 : {x}, {p}, {p}, {p}
}}
"""


def run(runner, directory, number, random):
    """The error of configuration `number`, or nothing."""
    kinds = list(SHAPES)
    kind = kinds[number % len(kinds)]
    shapes = SHAPES[kind]
    shape = shapes[number // len(kinds) % len(shapes)]
    element = ["f32", "bf16", "f16", "f32"][int(random.integers(4))]
    is_dynamic = bool(random.integers(2))
    parameters = f", vector_bits = {random.choice([128, 256, 512])}, threads = {random.choice([0, 1, 3])}"
    parameters += f", row_blocks = {random.choice([1, 5, 32])}, streaming_bytes = {random.choice([0, 1])}"
    parameters += f", fma = {'true' if random.integers(2) else 'false'}, columns = {random.choice([64, 1024])}"
    schedule = f"#bngrad.schedule<{kind}{'' if kind == 'loops' else parameters}>"
    file = os.path.join(directory, "program.mlir")
    with open(file, "w") as stream:
        stream.write(program(shape, element, is_dynamic))
    values, offset = data(random, shape)
    inputs = [os.path.join(directory, name) for name in ("x.npy", "offset.npy")]
    np.save(inputs[0], values)
    np.save(inputs[1], offset)
    found = []
    for threads in THREADS:
        results = [os.path.join(directory, f"{i}.npy") for i in range(4)]
        done = subprocess.run(
            [runner, file, f"--schedule={schedule}", f"--threads={threads}", *(f"--arg={path}" for path in inputs),
             *(f"--result={path}" for path in results), *(["--check"] if threads == 1 else [])],
            capture_output=True, text=True)
        if done.returncode:
            return f"{schedule} {shape} {element}{' dynamic' * is_dynamic}: {done.stdout}{done.stderr}"
        found.append([open(path, "rb").read() for path in results])
    if any(other != found[0] for other in found):
        return f"{schedule} {shape} {element}: the results depend on the number of threads"
    if element == "f32":
        output = np.load(os.path.join(directory, "0.npy"))
        axes = tuple(i for i in range(len(shape)) if i != 1)
        constant = values.max(axis=axes) == values.min(axis=axes)
        expected = offset.reshape([-1 if i == 1 else 1 for i in range(len(shape))])
        if not np.all((output == expected) | ~constant.reshape(expected.shape)):
            return f"{schedule} {shape}: a constant channel does not give the offset"
    return None


def main():
    runner, directory = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(SEED)
    failed = 0
    for number in range(count):
        if error := run(runner, directory, number, random):
            failed += 1
            print("FAILED", error)
    print(f"seed {SEED}\n{count} executions, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
