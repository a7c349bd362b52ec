"""strides.py COMPILER DIR [--long]: gradients of memrefs of any strides, against numpy.

Each operand has an order of its dims in memory, gaps, an offset and steps of its own; inputs may also have strides of
0. The reference and the bound are those of numpy_reference.py. Prints the seed and `N executions, 0 failed`.
"""

import ctypes
import os
import subprocess
import sys
import types

import numpy as np
import numpy_reference
from targets import descriptor

SEED = 20261125
COUNT, QUICK_COUNT = 27, 6  # executions of each function of each program
# The first executions have data of their own: some of the channels, and operands in two orders, of which one is copied.
PARTS, MIXED_INPUTS, MIXED_RESULT = range(3)
# Name: type, rank, feature dim, whether there is a mask.
FUNCTIONS = {
    "images": ("f32", 4, 1, False),
    "halves": ("bf16", 3, 1, False),
    "rows": ("f64", 2, 1, False),
    "masked": ("f32", 4, 3, True),
}
SCHEDULES = [
    "",
    "rows, threads = 2, streaming_bytes = 1, fma = true",
    "channels, threads = 2, streaming_bytes = 1, vector_bits = 256",
]
STORAGE = {"f32": np.float32, "f64": np.float64, "bf16": np.uint16, "i1": np.uint8}


def mlir(name):
    kind, rank, feature, has_mask = FUNCTIONS[name]
    dims, strides = "x".join(["?"] * rank), ", ".join(["?"] * rank)
    memref = lambda element: f"memref<{dims}x{element}, strided<[{strides}], offset: ?>>"
    data, parameter = f"tensor<{dims}x{kind}>", f"tensor<?x{'f64' if kind == 'f64' else 'f32'}>"
    channel = parameter.replace("tensor", "memref")
    operands = {"grad_output": memref(kind), "input": memref(kind)}
    operands |= {name: channel for name in ("scale", "mean", "inv_std")}
    operands |= {"mask": memref("i1")} if has_mask else {}
    results = [("dx", memref(kind), data), ("ds", channel, parameter), ("do", channel, parameter)]
    tensors = {n: (f"tensor<{dims}xi1>" if n == "mask" else data if t != channel else parameter) for n, t in operands.items()}
    lines = [f"func.func @{name}({', '.join(f'%{n}_m: {t}' for n, t in [*operands.items(), *(r[:2] for r in results)])})"
             " attributes {llvm.emit_c_interface} {"]
    lines += [f"  %{n} = bufferization.to_tensor %{n}_m restrict : {t} to {tensors[n]}" for n, t in operands.items()]
    lines.append(f"  %r:3 = bngrad.batch_norm_backward {' '.join(f'{n}(%{n} : {t})' for n, t in tensors.items())}"
                 f" {{feature_dims = array<i64: {feature}>}} : {data}, {parameter}, {parameter}")
    lines += [f"  bufferization.materialize_in_destination %r#{i} in restrict writable %{n}_m : ({t}, {m}) -> ()"
              for i, (n, m, t) in enumerate(results)]
    return "\n".join([*lines, "  return", "}\n"])


class Layout:
    """Strides of one operand."""

    def __init__(self, random, shape, kind, order, is_dense, is_input, pads=None):
        self.shape, self.order = shape, order
        rank = len(shape)
        is_fixed = pads is not None
        is_dense |= is_fixed  # without other gaps
        pads = pads if is_fixed else np.zeros((rank, 2), int) if is_dense else random.choice([0, 0, 0, 1, 3], (rank, 2))
        steps = [1] * rank if is_dense else [int(random.choice([1, 1, 1, 1, 2, -1])) for _ in range(rank)]
        extents = [s * abs(k) + before + after for s, k, (before, after) in zip(shape, steps, pads)]
        self.buffer = np.full([extents[dim] for dim in order], 7, STORAGE[kind])
        whole = self.buffer.transpose(np.argsort(order))
        self.array = whole[tuple(slice(before, before + s * abs(k)) for s, k, (before, _) in zip(shape, steps, pads))]
        self.array = self.array[tuple(slice(None, None, k) for k in steps)]
        if is_input and not is_dense and random.random() < 0.1:
            dim = int(random.integers(rank))
            one = self.array[tuple(slice(0, 1) if d == dim else slice(None) for d in range(rank))]
            self.array = np.lib.stride_tricks.as_strided(one, shape, [0 if d == dim else s for d, s in enumerate(one.strides)])
        assert self.array.shape == shape


def pick_layouts(random, shape, kind, names, feature, execution):
    """All dense in one order, or all of one order, or each of its own; PARTS has the channels from the second on."""
    rank = len(shape)
    if execution in (MIXED_INPUTS, MIXED_RESULT):
        first, *others = (dim for dim in range(rank) if dim != feature)
        if rank == 2:
            other_order = [feature, first]
        elif feature == rank - 1:
            other_order = [first, feature, *others]
        else:
            other_order = [first, *others, feature]
        for name in names:
            is_other = name == "dx" if execution == MIXED_RESULT else name in ("input", "mask")
            order = other_order if is_other else list(range(rank))
            yield name, Layout(random, shape, "i1" if name == "mask" else kind, order, True, False)
        return
    if execution == PARTS:
        pads = np.array([[0, 0]] * (rank - 1) + [[1, 2]])
        for name in names:
            yield name, Layout(random, shape, "i1" if name == "mask" else kind, list(range(rank)), True, False, pads)
        return
    same = random.permutation(rank)
    mode = random.integers(4)
    for name in names:
        order = random.permutation(rank) if mode == 3 and random.random() < 0.5 else same
        is_dense = mode == 0 or (mode >= 2 and random.random() < 0.5)
        yield name, Layout(random, shape, "i1" if name == "mask" else kind, order, is_dense, name != "dx")


def pick_shape(random, rank, feature, execution):
    if execution in (MIXED_INPUTS, MIXED_RESULT):
        # Whole lines in both orders, or not.
        channels, row = (64, 96) if random.random() < 0.5 else (37, 83)
        return {2: (300, 64), 3: (5, channels, row), 4: (5, channels, 4, row) if feature == 1 else (5, 4, row, channels)}[rank]
    if rank == 2 and execution == PARTS:
        return 300, 32
    most = {2: (3000, 40), 3: (9, 20, 300), 4: (5, 20, 12, 40)}[rank]
    if rank == 2 and random.random() < 0.2:  # rows of four registers
        return int(random.integers(1, 600)), 32
    if random.random() < 0.3:  # enough for several threads
        most = [3 * size for size in most]
    return tuple(int(random.integers(1, size + 1)) for size in random.permutation(most))


def read(values, kind):
    return numpy_reference.widen(values) if kind == "bf16" else values.astype(numpy_reference.real)


def fill(array, kind, values):
    """Stores `values`, and returns those that `array` then has."""
    if kind == "bf16":
        values = (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")
    array[...] = values
    return array != 0 if kind == "i1" else read(array, kind)


def execute(function, random, name, execution):
    """A description of the errors; empty if there are none."""
    kind, rank, feature, has_mask = FUNCTIONS[name]
    shape = pick_shape(random, rank, feature, execution)
    channels = (shape[feature],)
    parameter = "f64" if kind == "f64" else "f32"
    layouts = dict(pick_layouts(random, shape, kind, ["grad_output", "input", "dx"] + ["mask"] * has_mask, feature,
                                execution))
    config = types.SimpleNamespace(
        data=kind, parameter=parameter, results=[kind, parameter, parameter], shape=shape, features=[feature],
        reduced=tuple(d for d in range(rank) if d != feature), channels=channels, count=int(np.prod(shape)) // shape[feature],
        is_batch=True, has_inv_std=True, has_scale=True,
        per_channel=lambda values: values.reshape([-1 if d == feature else 1 for d in range(rank)]))
    location = config.per_channel(random.uniform(0.25, 2, channels))
    values = {
        "grad_output": fill(layouts["grad_output"].array, kind, location / 3 + random.uniform(-1, 1.25, shape)),
        "input": fill(layouts["input"].array, kind, location + random.normal(0, 1, shape)),
    }
    if has_mask:
        values["mask"] = fill(layouts["mask"].array, "i1", random.random(shape) < 0.7)
    vectors = {n: random.uniform(0.5, 2, channels).astype(STORAGE[parameter]) for n in ("scale", "mean", "inv_std")}
    values |= {n: v.astype(numpy_reference.real) for n, v in vectors.items()}
    sums = [np.full(channels, 7, STORAGE[parameter]) for _ in range(2)]
    arrays = [layouts["grad_output"].array, layouts["input"].array, *vectors.values()]
    arrays += [l.array for n, l in layouts.items() if n == "mask"] + [layouts["dx"].array, *sums]
    descriptors = [descriptor(array) for array in arrays]
    function(*(ctypes.c_void_p(d.ctypes.data) for d in descriptors))
    results = [read(layouts["dx"].array, kind), *(read(s, parameter) for s in sums)]
    problems = numpy_reference.compare(results, numpy_reference.reference(config, values))
    layouts["dx"].array[...] = 7
    if not (layouts["dx"].buffer == 7).all():
        problems.append("memory beside grad_input was written to")
    text = ", ".join(f"{n}: {[s // l.array.itemsize for s in l.array.strides]}" for n, l in layouts.items())
    return [f"{name} {shape} ({text}): {problem}" for problem in problems]


def main():
    compiler, directory, *options = sys.argv[1:]
    is_long = "--long" in options
    os.makedirs(directory, exist_ok=True)
    print("seed", SEED)
    random = np.random.default_rng(SEED)
    executions = failed = 0
    for number, schedule in enumerate(SCHEDULES):
        # Of the quick test, half of the functions.
        names = list(FUNCTIONS) if is_long else list(FUNCTIONS)[number % 2::2]
        program, library = (os.path.join(directory, f"{number}.{kind}") for kind in ("mlir", "so"))
        with open(program, "w") as file:
            file.write("".join(map(mlir, names)))
        options = [f"--schedule=#bngrad.schedule<{schedule}>"] if schedule else ["--threads=2"]
        subprocess.run([compiler, program, "-o", library, *options], check=True)
        functions = ctypes.CDLL(library)
        for name in names:
            for execution in range(COUNT if is_long else QUICK_COUNT):
                problems = execute(getattr(functions, "_mlir_ciface_" + name), random, name, execution)
                executions += 1
                failed += bool(problems)
                for problem in problems[:3]:
                    print(schedule or "chosen", problem)
    print(f"{executions} executions, {failed} failed")


if __name__ == "__main__":
    main()
