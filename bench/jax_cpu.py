"""bngrad.jax beside JAX's own gradient, and the cost of a tiny call.

    PYTHONPATH=<folder of bngrad> python bench/jax_cpu.py [--output=FILE.md] [--rounds=N]

Needs jax and flax. One thread on one core; CPU time of the process, minima of
rounds in which all contenders take turns. Memory that is freed stays with the
process, so that nobody pays for pages of outputs.
"""

import argparse
import os
import pathlib
import sys
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Read by the C library when the process starts, and by XLA.
SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 29),
    "NPROC": "1",
    "JAX_PLATFORMS": "cpu",
}
SHAPES = [
    ("32x64x56x56 nchw", (32, 64, 56, 56), 1),
    ("32x64x56x56 nhwc", (32, 56, 56, 64), 3),
    ("32x256x14x14 nchw", (32, 256, 14, 14), 1),
    ("32x256x14x14 nhwc", (32, 14, 14, 256), 3),
    ("1024x512", (1024, 512), 1),
]


def restart():
    """Runs this program again on one core, with the settings."""
    if all(os.environ.get(name) == value for name, value in SETTINGS.items()):
        return
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | SETTINGS)


def measure(contenders, rounds, calls=1):
    """The least CPU time of a call, in seconds, by contender."""
    import jax

    best = dict.fromkeys(contenders, float("inf"))
    for index in range(rounds + 1):
        for name, (function, arguments) in contenders.items():
            # The first call after the others' finds other data in the caches.
            jax.block_until_ready(function(*arguments))
            start = time.process_time()
            for _ in range(calls):
                jax.block_until_ready(function(*arguments))
            if index:
                best[name] = min(best[name], (time.process_time() - start) / calls)
    return best


def backward_of(function, arguments, weight):
    """The compiled gradient alone, with the residuals as arguments."""
    import jax

    _, pull = jax.vjp(jax.jit(function), *arguments)
    residuals, structure = jax.tree.flatten(pull)
    return jax.jit(lambda residuals, weight: structure.unflatten(residuals)(weight)), (residuals, weight)


def train_of(function, arguments, weight):
    """Output and gradient, compiled together."""
    import jax

    def step(weight, *arguments):
        y, pull = jax.vjp(function, *arguments)
        return y, pull(weight)

    return jax.jit(step), (weight, *arguments)


def make_contenders(make, shape, dim, type):
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy as np

    import bngrad.flax

    generator = np.random.default_rng(0)
    x, weight = (jnp.asarray(generator.standard_normal(shape), type) for _ in range(2))
    modules = {
        "bngrad": bngrad.flax.BatchNorm,
        "two-pass": lambda **fields: nn.BatchNorm(use_fast_variance=False, **fields),
        "one-pass": nn.BatchNorm,
    }
    contenders = {}
    for name, module in modules.items():
        module = module(use_running_average=False, axis=dim, dtype=type)
        variables = module.init(jax.random.key(0), x)

        def apply(parameters, x, module=module, variables=variables):
            return module.apply({**variables, "params": parameters}, x, mutable=["batch_stats"])[0]

        contenders[name] = make(apply, (variables["params"], x), weight)
    return contenders


def measure_shapes(rounds):
    """Rows of the table."""
    rows = []
    for type in ("float32", "bfloat16"):
        for name, shape, dim in SHAPES:
            for title, make in (("backward", backward_of), ("forward and backward", train_of)):
                times = measure(make_contenders(make, shape, dim, type), rounds)
                ours = times["bngrad"]
                rows.append((f"{name} {type}", title, *times.values(),
                             times["two-pass"] / ours, times["one-pass"] / ours))
                print(rows[-1], flush=True)
    return rows


def measure_tiny(rounds):
    """Microseconds of a tiny gradient, and of three additions of its operands."""
    import jax
    import jax.numpy as jnp

    import bngrad.jax

    x, vector = jnp.ones((2, 4, 2, 2)), jnp.ones(4)
    arguments = x, x, vector, vector, vector
    contenders = {
        "gradient": (jax.jit(lambda dy, x, mean, scale, variance: bngrad.jax.batch_norm_backward(
            dy, x, mean, scale=scale, variance=variance)), arguments),
        "three additions": (jax.jit(lambda dy, x, mean, scale, variance: (
            dy + x, mean + scale, scale + variance)), arguments),
    }
    return {name: seconds * 1e6 for name, seconds in measure(contenders, rounds, 2000).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/jax.md")
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    restart()
    import flax
    import jax

    tiny = measure_tiny(arguments.rounds)
    rows = measure_shapes(arguments.rounds)
    described = machine.describe(ROOT, 1)
    lines = [
        "# bngrad.jax beside JAX",
        "",
        f"`bench/jax_cpu.py`: jax {jax.__version__}, flax {flax.__version__}, {described['cpu']}, one thread,",
        f"commit `{described['commit']}`. CPU time in ms, minima of {arguments.rounds} rounds in which the three take",
        "turns. `bngrad.flax.BatchNorm` beside `flax.linen.BatchNorm` with `use_fast_variance=False`",
        "(two-pass) and by default (one-pass). The backward function reads the residuals that",
        "JAX has stored for it; forward and backward are compiled together.",
        "",
        "| case | function | bngrad | two-pass | one-pass | two-pass / bngrad | one-pass / bngrad |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for case, title, *times, two, one in rows:
        lines.append(f"| {case} | {title} | " + " | ".join(f"{value * 1e3:.3g}" for value in times)
                     + f" | {two:.2f} | {one:.2f} |")
    ratio = tiny["gradient"] / tiny["three additions"]
    lines += [
        "",
        f"A call of the gradient of 2x4x2x2 takes {tiny['gradient']:.1f} µs, a jit of three additions of its",
        f"operands {tiny['three additions']:.1f} µs: ratio {ratio:.2f}.",
    ]
    arguments.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
