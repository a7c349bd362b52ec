"""numpy_reference.py RUNNER DIR [--long]: compares compiled gradients with numpy's, for random configurations.

The reference is written from the formulas, in numpy's long double, and is independent of the C++ one: it
shares neither random numbers nor npy files nor the bound. Each configuration is also compared with wrong
references, which must be noticed. Prints the seed and `N configurations, 0 failed`.
"""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np

SEED = 20260127
COUNT, QUICK_COUNT = 48, 24  # three times every pair of data and parameter type
TYPES = ["f16", "bf16", "f32", "f64"]
MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}  # bits, including the leading one
SMALLEST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponents of subnormals
DTYPE = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i1": "|b1"}
NAMES = ["grad_input", "grad_scale", "grad_offset"]
real = np.longdouble


def save(path, kind, values):
    """Rounds `values` to `kind`, saves them, and returns the rounded values."""
    if kind != "bf16":
        values = np.asarray(values).astype(DTYPE[kind])
        np.save(path, values)
        return values if kind == "i1" else values.astype(real)
    bits = values.astype("<f4").view("<u4").astype("<u8")
    bits = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    bits[np.isnan(values)] = 0x7FC0
    np.save(path, bits.view("V2"))
    return widen(bits)


def widen(bits):
    return (bits.astype("<u4") << 16).view("<f4").astype(real)


def load(path, kind, shape):
    values = np.load(path)
    expected = np.dtype("V2") if kind == "bf16" else np.dtype(DTYPE[kind])
    assert values.dtype == expected and values.shape == shape, (path, values.dtype, values.shape)
    return widen(values.view("<u2")) if kind == "bf16" else values.astype(real)


class Configuration:
    """One op: shapes, types, operands that are present, attributes."""

    def __init__(self, number, random):
        def pick(values):
            return values[random.integers(len(values))]

        self.number = number
        self.data, self.parameter = TYPES[number % 4], TYPES[number // 4 % 4]
        self.results = [pick(TYPES) for _ in NAMES] if number % 2 else [self.data] + [self.parameter] * 2
        rank = number % 5 + 1
        self.shape = tuple(int(pick([1, 2, 3, 5, 7] if rank > 3 else [1, 3, 8, 17, 33])) for _ in range(rank))
        self.features = sorted(random.choice(rank, random.integers(1, min(rank, 3) + 1), replace=False).tolist())
        self.reduced = tuple(d for d in range(rank) if d not in self.features)
        self.channels = tuple(self.shape[d] for d in self.features)
        self.count = int(np.prod([self.shape[d] for d in self.reduced], dtype=int))
        self.is_batch, self.has_inv_std, self.has_scale, self.has_mask = (pick([True, False]) for _ in range(4))
        self.epsilon = 0.0 if self.has_inv_std else pick([0.0, 1e-3, 0.5])
        self.is_dynamic = pick([True, False])
        self.special = pick([None, None, None, np.nan, np.inf])
        self.seed = int(random.integers(2**32))

    def __str__(self):
        return f"configuration {self.number} ({self.mlir()})"

    def operands(self, directory):
        """Writes the operands; yields (name, type, path, values in the file)."""
        random = np.random.default_rng(self.seed)
        # Each channel has its own mean and spread.
        location = self.per_channel(random.uniform(0.25, 2, self.channels))
        spread = self.per_channel(random.uniform(0.5, 1.5, self.channels))
        values = {
            "grad_output": location / 3 + spread * random.uniform(-1, 1.25, self.shape),
            "input": location + spread * random.normal(0, 1, self.shape),
            "scale": random.uniform(0.5, 2, self.channels),
            "mean": location.reshape(self.channels) + random.uniform(0.05, 0.2, self.channels),
            "inv_std" if self.has_inv_std else "variance": random.uniform(0.5, 2, self.channels),
            "mask": random.random(self.shape) < 0.7,
        }
        if self.special is not None:
            values[["grad_output", "input"][self.number % 2]].flat[random.integers(np.prod(self.shape))] = self.special
        if not self.has_scale:
            del values["scale"]
        if not self.has_mask:
            del values["mask"]
        kinds = {"grad_output": self.data, "input": self.data, "mask": "i1"}
        for name, value in values.items():
            kind = kinds.get(name, self.parameter)
            path = os.path.join(directory, f"{self.number}.{name}.npy")
            yield name, kind, path, save(path, kind, value)

    def per_channel(self, values):
        return values.reshape([s if d in self.features else 1 for d, s in enumerate(self.shape)])

    def mlir(self):
        def tensor(kind, shape):
            return "tensor<" + "".join(("?" if self.is_dynamic else str(s)) + "x" for s in shape) + kind + ">"

        data, parameter = tensor(self.data, self.shape), tensor(self.parameter, self.channels)
        types = {"grad_output": data, "input": data}
        types |= {"scale": parameter} if self.has_scale else {}
        types |= {"mean": parameter, "inv_std" if self.has_inv_std else "variance": parameter}
        types |= {"mask": tensor("i1", self.shape)} if self.has_mask else {}
        results = ", ".join(tensor(t, s) for t, s in zip(self.results, [self.shape, self.channels, self.channels]))
        return (
            f"func.func @f({', '.join(f'%{n}: {t}' for n, t in types.items())}) -> ({results}) {{\n"
            f"  %0:3 = bngrad.batch_norm_backward {' '.join(f'{n}(%{n} : {t})' for n, t in types.items())}\n"
            f"    {{feature_dims = array<i64: {', '.join(map(str, self.features))}>, epsilon = {self.epsilon:e} : f64,\n"
            f"     statistics = #bngrad.statistics<{'batch' if self.is_batch else 'global'}>}} : {results}\n"
            f"  return %0#0, %0#1, %0#2 : {results}\n}}\n"
        )


def reference(c, operands, wrong=None):
    """(exact, bound) of each result; `wrong` names a deliberate mistake."""
    dy, x, mean = operands["grad_output"], operands["input"], c.per_channel(operands["mean"])
    mask = operands.get("mask", True)
    r = operands["inv_std"] if c.has_inv_std else 1 / np.sqrt(operands["variance"] + real(c.epsilon))
    r = c.per_channel(r)
    scale = c.per_channel(operands["scale"]) if c.has_scale else real(1)
    dy = np.where(True if wrong == "mask ignored" else mask, dy, real(0))
    xmu = x + mean if wrong == "sign of input - mean" else x - mean
    third = 1 if wrong == "sign of the third term" else -1

    def total(terms):
        return terms.sum(axis=c.reduced, keepdims=True)

    def grad_input(dy, xmu, sum_dy, sum_dy_xmu, second, third):
        """The gradient for signs -1 and -1; its A for 1 and 1 and absolute values."""
        if c.is_batch:
            dy = dy + second * (sum_dy / c.count) + third * (xmu * (r * r) * (sum_dy_xmu / c.count))
        return scale * r * dy

    sums = total(dy), total(dy * xmu)
    exact = [grad_input(dy, xmu, *sums, -1, third), sums[1] * r, sums[0]]
    sums = total(abs(dy)), total(abs(dy * xmu))
    sizes = [grad_input(abs(dy), abs(xmu), *sums, 1, 1), sums[1] * r, sums[0]]  # scale and r are positive
    if wrong == "channels exchanged":
        exact = [np.roll(e, 1, c.features[np.argmax(c.channels)]) for e in exact]

    accumulator = max(24, MANTISSA[c.data], MANTISSA[c.parameter])
    allowed = 4 * real(2) ** -accumulator * (4 + np.log2(real(c.count + 1)))
    for kind, e, size, shape in zip(c.results, exact, sizes, [c.shape, c.channels, c.channels]):
        bound = real(2) ** -MANTISSA[kind] * abs(e) + allowed * size + real(2) ** SMALLEST[kind]
        yield e.reshape(shape), bound.reshape(shape)


def compare(results, expected):
    """A description of the errors; empty if there are none."""
    problems = []
    for name, result, (exact, bound) in zip(NAMES, results, expected):
        is_finite = np.isfinite(exact)
        good = np.where(is_finite, abs(result - exact) <= bound, (result == exact) | (np.isnan(result) & np.isnan(exact)))
        if not good.all():
            where = np.unravel_index(np.argmin(good), good.shape)
            problems.append(f"{name}{list(where)} is {result[where]}, expected {exact[where]} +- {bound[where]}")
    return problems


def wrong_references(c, mask):
    """The mistakes that change a result of `c`."""
    if c.special is not None or not np.any(mask):
        return
    if not np.all(mask):
        yield "mask ignored"
    yield "sign of input - mean"
    if c.is_batch:
        yield "sign of the third term"
    if max(c.channels) > 1:
        yield "channels exchanged"


def check(c, runner, directory):
    """(errors, number of wrong references, unnoticed ones)."""
    operands = list(c.operands(directory))
    program = os.path.join(directory, f"{c.number}.mlir")
    with open(program, "w") as file:
        file.write(c.mlir())
    paths = [os.path.join(directory, f"{c.number}.{name}.npy") for name in NAMES]
    command = [runner, program, *(f"--arg={path}" for _, _, path, _ in operands), *(f"--result={path}" for path in paths)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode or run.stdout or run.stderr:
        return [f"exit status {run.returncode}: {run.stdout}{run.stderr}"], 0, []
    results = [load(p, t, s) for p, t, s in zip(paths, c.results, [c.shape, c.channels, c.channels])]
    values = {name: value for name, _, _, value in operands}
    with np.errstate(all="ignore"):
        problems = compare(results, reference(c, values))
        wrong = list(wrong_references(c, values.get("mask", True)))
        unnoticed = [w for w in wrong if not compare(results, reference(c, values, w))]
    return problems, len(wrong), unnoticed


def main():
    runner, directory, *options = sys.argv[1:]
    count = COUNT if "--long" in options else QUICK_COUNT
    os.makedirs(directory, exist_ok=True)
    print("seed", SEED)
    random = np.random.default_rng(SEED)
    configurations = [Configuration(i, random) for i in range(count)]
    num_failed = num_wrong = num_unnoticed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda c: check(c, runner, directory), configurations)
        for c, (problems, wrong, unnoticed) in zip(configurations, outcomes):
            num_failed += bool(problems)
            num_wrong += wrong
            num_unnoticed += len(unnoticed)
            for text in problems + [f"unnoticed: {w}" for w in unnoticed]:
                print(f"{c}: {text}")
    print(f"{num_wrong} wrong references, {num_unnoticed} unnoticed")
    print(f"{count} configurations, {num_failed} failed")
    return 1 if num_failed or num_unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
