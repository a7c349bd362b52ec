"""schedules.py RUNNER DIR [COUNT]: runs random gradients with every schedule, set by hand.

Each is checked by `--check`, and its results must be bitwise identical to those of the same schedule with other
numbers of shares and threads. Sizes are chosen around the parameters of the loops: vectors of 4, 16 and 64
elements, chains of 8 rows, lines of 64 bytes, tiles, segments of 16384 elements. Prints the seed and `N executions, 0
failed`.
"""

import os
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))

from schedule_kinds import read_kinds  # noqa: E402

SEED = 20261120
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 49, 63, 64, 65, 127, 129, 196, 260]
LONG = [784, 1000, 1024, 1031, 16384, 17000, 33000]


class Case:
    def __init__(self, number, random, kinds):
        def pick(values):
            return values[int(random.integers(len(values)))]

        self.number = number
        kinds = [kind for kind in kinds if kind.target == "cpu"]
        kind = kinds[number % len(kinds)]
        self.kind = kind.name
        self.data = pick(["f32", "f32", "bf16", "f16", "f64"])
        self.parameter = pick(["f32", self.data])
        self.results = pick([[self.data, self.parameter, self.parameter], ["f32", "f64", "f32"], ["bf16", "f32", "f16"]])
        channels, row = pick(SIZES), pick(SIZES + LONG)
        if channels * row > 70000:
            channels = pick([1, 2, 3])
        if kind.takes("nhwc"):
            self.shape, self.feature = pick([((row, channels), 1), ((2, row, channels), 2), ((3, 2, row, channels), 3)])
        else:
            batch = pick([1, 2, 3, 8, 9, 17]) if channels * row < 5000 else pick([1, 2])
            if self.kind == "sizes" and pick([True, False, False]):
                batch, channels, row = 33, 260, pick([16, 17, 31])  # enough short rows for tiles
            self.shape, self.feature = pick(
                [((batch, channels, row), 1), ((channels, row), 0), ((batch, channels, 2, row), 1),
                 ((2, channels, 2, 3, row), 1)])
        self.is_dynamic = pick([True, False])
        self.is_global = pick([True, False, False])
        self.has_mask = pick([True, False, False])
        self.has_consumer = pick([True, False])
        self.used = pick([[0, 1, 2], [0, 1, 2], [0], [1], [1, 2], [0, 2]])
        self.bits = pick([512, 512, 256, 128])
        self.streaming = pick([0, 1])
        self.columns = pick([1024, 1024, 64, 256])
        self.fma = pick(["true", "false"])

    def mlir(self):
        def tensor(kind, shape):
            return "tensor<" + "".join(("?" if self.is_dynamic else str(s)) + "x" for s in shape) + kind + ">"

        channels = (self.shape[self.feature],)
        data, parameter = tensor(self.data, self.shape), tensor(self.parameter, channels)
        types = {"dy": data, "x": data, "scale": parameter, "mean": parameter, "variance": parameter}
        if self.has_mask:
            types["k"] = tensor("i1", self.shape)
        results = [tensor(t, s) for t, s in zip(self.results, [self.shape, channels, channels])]
        mask = f" mask(%k : {types['k']})" if self.has_mask else ""
        body = (
            f"  %0:3 = bngrad.batch_norm_backward grad_output(%dy : {data}) input(%x : {data}) scale(%scale : {parameter})\n"
            f"    mean(%mean : {parameter}) variance(%variance : {parameter}){mask} {{feature_dims = array<i64: {self.feature}>,\n"
            f"    epsilon = 1.0e-3 : f64, statistics = #bngrad.statistics<{'global' if self.is_global else 'batch'}>}}"
            f" : {', '.join(results)}\n"
        )
        values = [f"%0#{i}" for i in self.used]
        if self.has_consumer and 0 in self.used:
            body += f"  %1 = arith.negf %0#0 : {results[0]}\n"
            values[0] = "%1"
        used = ", ".join(results[i] for i in self.used)
        arguments = ", ".join(f"%{name}: {type}" for name, type in types.items())
        return f"func.func @f({arguments}) -> ({used}) {{\n{body}  return {', '.join(values)} : {used}\n}}\n"

    def schedule(self, shares):
        return (f"#bngrad.schedule<{self.kind}, threads = {shares}, vector_bits = {self.bits}, "
                f"streaming_bytes = {self.streaming}, columns = {self.columns}, row_blocks = 5, "
                f"fma = {self.fma}>")

    def __str__(self):
        return f"case {self.number}: {self.schedule(1)}\n{self.mlir()}shape {self.shape}"


def run(case, runner, path, shares, threads, check):
    shapes = [case.shape] * 2 + [(case.shape[case.feature],)] * 3 + [case.shape] * case.has_mask
    suffix = ["@" + "x".join(map(str, s)) if case.is_dynamic else "" for s in shapes]
    outputs = [f"{path}.{shares}.{i}.npy" for i in range(len(case.used))]
    command = [runner, path, f"--schedule={case.schedule(shares)}", f"--threads={threads}"]
    ranges = ["", "", "", "", ":0.5:1.5", ""]  # the op determines the range of the variance, even
                                               # without one here
    command += [f"--arg=random:{i + 1}{r}{s}" for i, (r, s) in enumerate(zip(ranges, suffix))]
    command += [f"--result={output}" for output in outputs] + ["--check"] * check
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr + f"exit status {done.returncode}")
    contents = []
    for output in outputs:
        with open(output, "rb") as file:
            contents.append(file.read())
        os.remove(output)
    return contents


def main():
    runner, directory = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(SEED)
    kinds = read_kinds(os.path.join(os.path.dirname(runner), "bngrad-opt"))
    failed = 0
    for number in range(count):
        case = Case(number, random, kinds)
        path = os.path.join(directory, f"{number}.mlir")
        with open(path, "w") as file:
            file.write(case.mlir())
        try:
            first = run(case, runner, path, 1, 1, check=True)
            shares, threads = [(2, 2), (3, 2), (7, 7), (2, 1)][number % 4]
            assert run(case, runner, path, shares, threads, check=False) == first, f"{shares} shares differ from one"
        except AssertionError as error:
            failed += 1
            print(f"FAILED {case}\n{error}")
    print(f"seed {SEED}\n{2 * count} executions, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
