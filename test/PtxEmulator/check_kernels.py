"""Runs the kernels of Inputs/kernels.c and compares with numpy."""

import argparse
import os
import subprocess
import tempfile

import numpy as np


def check(name, got, expected, bound=0.0):
    error = np.max(np.abs(got.astype(np.float64) - expected))
    if not error <= bound:
        raise SystemExit(f"{name}: expected an error of at most {bound}, got {error}")
    print(f"{name}: {got.size} results")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptx")
    parser.add_argument("--tool", default="ptx-emulator")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    folder = tempfile.TemporaryDirectory()

    def run(kernel, grid, block, inputs, output, *scalars):
        """`inputs` are (type, array), `output` is (type, count, dtype, fill)."""
        arguments = []
        for i, (ptx_type, array) in enumerate(inputs):
            path = os.path.join(folder.name, f"in{i}")
            array.tofile(path)
            arguments.append(f"--arg=buffer:{ptx_type}:{array.size}:@{path}")
        ptx_type, count, dtype, fill = output
        arguments.append(f"--arg=buffer:{ptx_type}:{count}:{fill}")
        arguments += [f"--arg=s32:{value}" for value in scalars]
        path = os.path.join(folder.name, "out")
        subprocess.run(
            [options.tool, options.ptx, f"--kernel={kernel}", f"--grid={grid}",
             f"--block={block}", *arguments, f"--dump={len(inputs)}:{path}"],
            check=True)
        return np.fromfile(path, dtype)

    x = rng.standard_normal((3, 1000)).astype(np.float32)
    got = run("block_sum", 3, 256, [("f32", x)], ("f32", 3, np.float32, "uninit"), 1000)
    check("block_sum", got, x.astype(np.float64).sum(axis=1), 1e-4)

    x = rng.standard_normal(1000).astype(np.float32)
    v = x.astype(np.float64)
    got = run("functions", 4, 256, [("f32", x)], ("f32", 2000, np.float32, "uninit"), 1000)
    got = got.reshape(-1, 2)
    check("exp", got[:, 0] / np.exp(v), 1.0, 1e-6)
    check("tanh", got[:, 1], np.tanh(v), 1e-6)

    d = rng.standard_normal(1000)
    got = run("doubles", 4, 256, [("f64", d)], ("f64", 2000, np.float64, "uninit"), 1000)
    got = got.reshape(-1, 2)
    check("doubles", got[:, 0], np.sqrt(d * d + 1) / (d * d + 2), 1e-15)
    check("integers of doubles", got[:, 1], np.abs(np.trunc(d * 1000)))

    h = rng.standard_normal(1000).astype(np.float16)
    got = run("halves", 4, 256, [("f16", h)], ("f16", 1000, np.float16, "uninit"), 1000)
    check("halves", got, (h.astype(np.float64) * 3 + 0.25).astype(np.float16), 2e-2)

    b = (x.view(np.uint32) >> 16).astype(np.uint16)
    got = run("bfloats", 4, 256, [("bf16", b)], ("bf16", 1000, np.uint16, "uninit"), 1000)
    exact = (b.astype(np.uint32) << 16).view(np.float32).astype(np.float64) * 3 + 1
    bits = exact.astype(np.float32).view(np.uint32)
    check("bfloats", got, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)

    def collatz(n):
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n // 2
            steps += 1
        return steps

    got = run("collatz", 1, 1000, [], ("s32", 1000, np.int32, "uninit"))
    check("collatz", got, np.array([collatz(i + 1) for i in range(1000)]))

    u = np.arange(5000, dtype=np.uint32)
    got = run("histogram", 3, 128, [("u32", u)], ("u32", 16, np.uint32, "zero"), 5000)
    check("histogram", got, np.bincount(u % 16))

    c = (np.arange(64) % 8).astype(np.int32)
    t = np.arange(64)
    got = run("choose", 1, 64, [("s32", c)], ("s32", 64, np.int32, "uninit"))
    check("choose", got, np.choose(
        c, [t * 0 + 7, 5 + t, t * 0 - 2, t * t, t % 3, 1000 // (t + 1), t * 0 + 6, t * 0 + 7]))


if __name__ == "__main__":
    main()
