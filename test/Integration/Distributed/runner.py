"""runner.py openmpi|mpich RUNNER BACKEND BACKEND_OF_MPI DIR [--long] [GROUP...]: programs with shard annotations in
several processes. Without --long, a part of the programs.

Every process compares its part of the results with the reference in long double of the whole batch. BACKEND is
Inputs/backend.c, which counts all-reduces, and omits them: then the comparison must fail in every process. Prints the
time of each run and `N runs, 0 failed`.
"""

import collections
import dataclasses
import os
import re
import sys
import time

import numpy as np
from launch import launch
from programs import FORWARD_NAMES, NAMES, Gradient, Training, random_arguments, write_program

MPI, RUNNER, BACKEND, BACKEND_OF_MPI, DIR, *OPTIONS = sys.argv[1:]
IS_LONG = "--long" in OPTIONS
F32, F64, I64 = range(3)
count = 0
numbers = iter(range(1000))
failures = []


@dataclasses.dataclass
class Case:
    name: str
    grid: str
    ops: list
    # Of the whole arrays, where types have dynamic sizes.
    shapes: list = None
    options: list = dataclasses.field(default_factory=list)

    def size(self):
        return int(np.prod([int(size) for size in self.grid.split("x")]))

    def write(self):
        path = os.path.join(DIR, f"{next(numbers)}.mlir")
        with open(path, "w") as file:
            file.write(write_program(self.grid, self.ops))
        return path

    def command(self, path, *options, mpi=MPI):
        arguments = random_arguments(self.ops, self.shapes or [op.shape for op in self.ops])
        return [RUNNER, path, f"--mpi={mpi}", *arguments, *self.options, *options]

    def num_results(self):
        return sum(len(op.results) for op in self.ops)


def run(name, size, command, verify, options=(), **environment):
    global count
    count += 1
    start = time.time()
    status, out, err = launch(MPI, size, command, options, BNGRAD_TIMEOUT="60", **environment)
    error = verify(status, out, err)
    print(f"{time.time() - start:6.2f} s  {name}")
    if error:
        failures.append(name)
        print(f"FAILED: {error}; got status {status}, output:\n{out}{err}")


def count_lines(out, end):
    return len(re.findall(rf"^(?:rank \d+: )?result \d+ .* {end}$", out, re.M))


def passes(case):
    """All processes must print that all of their results are within their bounds."""
    expected = case.size() * case.num_results()

    def verify(status, out, err):
        if status != 0 or err or count_lines(out, "ok") != expected:
            return f"expected {expected} results to be ok"

    return verify


def checked_cases():
    dynamic = (None, 4, 5, 3)
    yield Case("one process", "1", [Gradient()])
    # One message of all sums in float, and one of those in double.
    yield Case("types", "2", [Gradient(data="f16"), Gradient(data="bf16"), Gradient(data="f32", mask=True),
                              Gradient(data="f64", parameter="f64")])
    yield Case("global statistics, local gradients, channels, nothing", "2",
               [Gradient(attributes="statistics = #bngrad.statistics<global>"),
                Gradient(attributes="local_parameter_gradients", results=NAMES[:1]), Gradient(split="[[], [0]]"),
                Gradient(shape=(0, 4, 3)), Gradient(shape=(4, 2), parameter="f64")])
    yield Case("uneven shards", "3", [Gradient(shape=dynamic, mask=True)], [(6, 4, 5, 3)], ["--shards=0:3+1+2"])
    yield Case("batch and channels", "2x2", [Gradient(split="[[0], [1]]"), Gradient(split="[[1], [], [], [0]]", shape=(6, 3, 5, 4), features=(3,))])
    # A mean of about 17,000 standard deviations.
    yield Case("training", "3", [Training(shape=dynamic, values=":9999:10001")], [(6, 4, 5, 3)], ["--shards=0:3+0+3"])
    yield Case("training and gradient", "2", [Training(results=FORWARD_NAMES + NAMES), Training(data="bf16", values=":99:101"),
                                              Training(data="f64", parameter="f64", values=":9999:10001")])
    yield Case("training of batch and channels", "2x2", [Training(split="[[0], [1]]"), Training(split="[[1], [], [], [0]]", shape=(6, 3, 5, 4), features=(3,))])
    if not IS_LONG:
        return
    yield Case("training of channels, nothing, parts of results", "2", [
        Training(split="[[], [0]]"), Training(shape=(0, 4, 3)), Training(results=FORWARD_NAMES[1:2]), Training(results=FORWARD_NAMES[2:3]),
        Training(results=FORWARD_NAMES[:1], data="f16"), Training(results=FORWARD_NAMES[3:])])
    yield Case("training of long rows and many channels", "3", [Training(shape=(None, 3, 7000), values=":9999:10001"), Training(shape=(None, 130), results=FORWARD_NAMES + NAMES)],
               [(6, 3, 7000), (6, 130)], ["--shards=0:3+1+2"])
    yield Case("training of uneven batch and height", "2x2", [Training(shape=(None, 4, None, 3), split="[[1], [], [0]]", data="bf16", values=":99:101")],
               [(5, 4, 7, 3)], ["--shards=1:4+1", "--shards=0:7+0"])
    yield Case("empty shards", "3", [Gradient(shape=dynamic, data="bf16")], [(7, 4, 5, 3)], ["--shards=0:0+7+0"])
    yield Case("sizes by default", "3", [Gradient(shape=dynamic)], [(5, 4, 5, 3)])
    yield Case("batch and height", "2x2", [Gradient(shape=(6, 4, 4, 3), split="[[0], [], [1]]"), Gradient(shape=(8, 4, 3, 3), split="[[0, 1]]")])
    yield Case("uneven batch and height", "2x2", [Gradient(shape=(None, 4, None, 3), split="[[1], [], [0]]")],
               [(5, 4, 7, 3)], ["--shards=1:4+1", "--shards=0:2+5"])
    yield Case("batch, channels and height", "2x2x2", [Gradient(shape=(4, 4, 4, 3), split="[[2], [0], [1]]", results=NAMES[:2])])


def check_cases():
    for case in checked_cases():
        run(case.name, case.size(), case.command(case.write(), "--check"), passes(case))


def without_sums(case):
    """A program whose sums stay those of each process."""
    wrong = sum(len(set(op.results)) for op in case.ops) * case.size()

    def verify(status, out, err):
        if status in (0, "no end") or count_lines(out, "FAILED") != wrong or "--check: expected all results" not in err:
            return f"expected {wrong} results to be out of bounds"

    return verify


def check_control():
    cases = [Case("", "2x2", [Gradient(split="[[0], [1]]", data="f64", parameter="f64")]), Case("", "2", [Training(data="f64", parameter="f64")]), Case("", "2", [Gradient()])]
    for case in cases if IS_LONG else cases[:2]:
        run(f"without sums on {case.grid}", case.size(), case.command(case.write(), "--check", mpi=BACKEND),
            without_sums(case), BNGRAD_TEST_BACKEND=BACKEND_OF_MPI, BNGRAD_TEST_SKIP="1")


def counts(case, steps):
    """All-reduces (bytes, type) of the program reach MPI in each process; runs of the tool itself add pairs of i64. Those of a
    step are started together."""
    expected = [reduction for step in steps for reduction in step]

    def verify(status, out, err):
        if status != 0:
            return "expected success"
        got = collections.defaultdict(list)
        for rank, size, kind in re.findall(r"^rank (\d+): (\d+) bytes of type (\d)$", out, re.M):
            if (size, kind) != ("16", str(I64)):
                got[int(rank)].append((int(size), int(kind)))
        if got != {rank: expected for rank in range(case.size() if expected else 0)}:
            return f"expected all-reduces {expected} in each process, got {dict(got)}"
        events = re.findall(r"^bngrad: rank 0: (starts|ends) all-reduce \d+, \d+ bytes: all-reduce of \w+ of bngrad\.batch", err, re.M)
        if events != [event for step in steps for event in ["starts"] * len(step) + ["ends"] * len(step)]:
            return f"expected the starts of each step of {steps} before its ends, got {events}"

    return verify


def check_counts():
    dynamic = Gradient(shape=(None, 4, 5, 3))
    sums = (2 * 4 * 4, F32)
    cases = [
        ("dynamic sizes", Case("", "2", [dynamic], [(6, 4, 5, 3)]), [[sums, (8, I64)]]),
        ("double", Case("", "2", [Gradient(data="f64", parameter="f64")]), [[(2 * 4 * 8, F64)]]),
        ("channels", Case("", "2", [Gradient(split="[[], [0]]")]), []),
        ("two ops", Case("", "2", [Gradient(), Gradient(shape=(2, 8, 3))]), [[(2 * 4 * 4 + 2 * 8 * 4, F32)]]),
        ("training", Case("", "2", [Training(), Training(shape=(2, 8, 3))]), [[((4 + 8) * 8, F64)], [(2 * (4 + 8) * 4, F32)]]),
        ("training and gradient", Case("", "2", [Training(shape=(None, 4, 5, 3), results=FORWARD_NAMES + NAMES)], [(6, 4, 5, 3)]),
         [[(8, I64), (4 * 8, F64), (8, I64)], [sums], [sums]]),
        ("mean", Case("", "2", [Training(results=FORWARD_NAMES[1:2])]), [[(4 * 8, F64)], [(4 * 4, F32)]]),
        ("static sizes", Case("", "2", [Gradient(data="bf16")]), [[sums]]),
        ("half of the channels", Case("", "2x2", [Gradient(split="[[0], [1]]")]), [[(2 * 2 * 4, F32)]]),
        ("global statistics", Case("", "2", [Gradient(attributes="statistics = #bngrad.statistics<global>", results=NAMES[:1])]), []),
        ("local gradients", Case("", "2", [Gradient(attributes="local_parameter_gradients", results=NAMES[1:])]), []),
    ]
    for name, case, expected in cases if IS_LONG else cases[:5]:
        run(f"counts, {name}", case.size(), case.command(case.write(), mpi=BACKEND), counts(case, expected),
            BNGRAD_TEST_BACKEND=BACKEND_OF_MPI, BNGRAD_LOG_COLLECTIVES="1")


def compute_gradient(dy, x, scale, mean, variance, epsilon=1e-3):
    """The three gradients over dims 0, 2 and 3, in long double."""
    dy, x, scale, mean, variance = (np.asarray(a, np.longdouble) for a in (dy, x, scale, mean, variance))
    inverse = 1 / np.sqrt(variance + epsilon)
    column = lambda a: a[:, None, None]
    centered = (x - column(mean)) * column(inverse)
    sum_dy, sum_product = dy.sum((0, 2, 3)), (dy * centered).sum((0, 2, 3))
    count = x.size // x.shape[1]
    dx = column(scale * inverse) * (dy - column(sum_dy) / count - centered * column(sum_product) / count)
    return dx, sum_product, sum_dy


def check_files():
    """Arguments and results in files: written once, whole, reproducible, and right by another reference."""
    case = Case("", "3", [Gradient(shape=(None, 4, 5, 3))], [(6, 4, 5, 3)], ["--shards=0:3+1+2"])
    program = case.write()
    random = np.random.default_rng(1)
    arrays = [random.uniform(-1, 1, (6, 4, 5, 3)) for _ in range(2)] + [random.uniform(0.5, 1.5, 4) for _ in range(3)]
    arrays = [array.astype("<f4") for array in arrays]
    arguments = []
    for i, array in enumerate(arrays):
        np.save(os.path.join(DIR, f"argument{i}.npy"), array)
        arguments.append(f"--arg={DIR}/argument{i}.npy")
    written = []
    for repetition in range(2):
        paths = [os.path.join(DIR, f"{name}{repetition}.npy") for name in NAMES]
        command = [RUNNER, program, f"--mpi={MPI}", *arguments, *case.options, "--check", *[f"--result={path}" for path in paths]]
        run(f"files, {repetition}", 3, command, passes(case))
        written.append([open(path, "rb").read() for path in paths])
        for path, expected in zip(paths, compute_gradient(*arrays)):
            got = np.load(path)
            if got.shape != expected.shape or not np.abs(got - expected).max() <= 90 * 2.0**-24 * np.abs(expected).max():
                failures.append(path)
                print(f"FAILED: {path}: expected other values")
    if written[0] != written[1]:
        failures.append("files")
        print("FAILED: expected the same bytes in both runs")
    left = [name for name in os.listdir(DIR) if not re.fullmatch(r"(argument\d|grad_\w+\d)\.npy|\d+\.mlir|\w+\.so", name)]
    if left:
        failures.append("files")
        print(f"FAILED: expected no other files, got {left}")


def check_equal():
    """Channels of equal elements: in any number of uneven parts, the mean is the element, the variance 0 and the output the offset."""
    case = Case("", "3", [Training(shape=(None, 4, 5), results=FORWARD_NAMES[:3])], [(7, 4, 5)], ["--shards=0:2+4+1"])
    elements, offset = np.array([0.1, 3e38, -7.3, 1e-3], np.float32), np.array([0.3, -2, 0.7, 0], np.float32)
    arrays = [np.tile(elements[:, None], (7, 1, 5)), np.full(4, 1.5, np.float32), offset]
    expected = [np.tile(offset[:, None], (7, 1, 5)), elements, np.zeros(4, np.float32)]
    command = [RUNNER, case.write(), f"--mpi={MPI}", *case.options]
    for i, array in enumerate(arrays):
        np.save(os.path.join(DIR, f"argument{i}.npy"), array)
        command.append(f"--arg={DIR}/argument{i}.npy")
    paths = [os.path.join(DIR, f"{name}0.npy") for name in FORWARD_NAMES[:3]]

    def verify(status, out, err):
        if status != 0 or out or err:
            return "expected success"
        for path, values in zip(paths, expected):
            if not np.array_equal(np.load(path), values):
                return f"{path}: expected {values}, got {np.load(path)}"

    run("equal elements", 3, command + [f"--result={path}" for path in paths], verify)


def check_emulator():
    case = Case("", "2", [Gradient(shape=(None, 4, 5, 8), data="bf16")], [(5, 4, 5, 8)], ["--target=cuda-emulator"])
    run("emulator", 2, case.command(case.write(), "--check"), passes(case))
    case = Case("", "2", [Training(shape=(None, 4, 5, 8), results=FORWARD_NAMES + NAMES)], [(5, 4, 5, 8)], ["--target=cuda-emulator"])
    run("emulator, training", 2, case.command(case.write(), "--check"), passes(case))


def check_failures():
    """Programs that differ, and a wrong launch: one line each, which names processes and both values."""
    gradient = Gradient()
    first = Case("", "2", [gradient])
    path, report = first.write(), "bngrad-runner: error: rank {}: all-reduce of sums of bngrad.batch_norm_backward "
    options = ["--enable-recovery"] if MPI == "openmpi" else []

    def is_refused(texts, lines):
        def verify(status, out, err):
            reported = [line for line in err.split("\n") if line.startswith("bngrad")]
            if status == "no end" or out or not options_used and status == 0:
                return "expected an end with another status than 0, and no output"
            if len(reported) != lines or not all(text in err for text in texts):
                return f"expected {lines} lines with {texts}"

        return verify

    for name, gradients, text in [
        ("epsilon", [dataclasses.replace(gradient, epsilon=0.5)], "got epsilon=1.000000e-03 on rank 0 and epsilon=5.000000e-01 on rank 1"),
        ("shape", [dataclasses.replace(gradient, shape=(6, 4, 5, 9))], "grad_output(tensor<6x4x5x9xf32>) input(tensor<6x4x5x9xf32>) on rank 1"),
        ("type", [dataclasses.replace(gradient, data="bf16")], "input(tensor<6x4x5x3xbf16>) on rank 1"),
    ]:
        options_used = options
        other = Case("", "2", gradients)
        command = [*first.command(path), ":", "-n", 1, *other.command(other.write())]
        run(f"another {name}", 1, command, is_refused([report.format(0), report.format(1), text], 2), options)
    options_used = []
    # An error of one process ends all of them.
    command = [*first.command(path), ":", "-n", 1, *first.command(path)[:-1], "--arg=none.npy"]
    run("a file that one lacks", 1, command, is_refused(["bngrad-runner: error: rank 1: argument 4: none.npy: "], 1))
    odd = Case("", "2", [Gradient(shape=(5, 4, 5, 3))])
    text = "expected dim 0 of argument 1 of @gradient to be a multiple of 2, the size of grid axes [0], got 5"
    run("wrong shape", 2, odd.command(odd.write()), is_refused([text], 1))
    cases = [
        ("processes", 3, [], "expected 2 processes for the grid 2, as of mpirun -n 2, got 3"),
        ("sizes", 2, ["--shards=0:1+2+3"], "expected 2 sizes of --shards for grid axes [0], got 3"),
        ("axes", 2, ["--shards=1:3+3"], "expected --shards for grid axes along which a dim of an argument is split, got [1]"),
        ("repetition", 2, ["--shards=0:3+3", "--shards=0:2+4"], "expected one --shards for grid axes [0], got 2"),
        ("numbers", 2, ["--shards=0:9223372036854775807+9223372036854775807"], "expected --shards to be AXIS[,AXIS...]:SIZE[+SIZE...], got"),
        ("back end", 2, ["--mpi=/none.so"], "--mpi: cannot load the back end: /none.so: "),
        ("file", 2, ["--result=/dev/null"], "expected a file for result 0, which is spread over processes, got '/dev/null'"),
    ]
    for name, size, options, text in cases if IS_LONG else cases[:3]:
        run(f"wrong {name}", size, first.command(path, *options), is_refused(["bngrad-runner: error: " + text], 1))


GROUPS = {"cases": check_cases, "control": check_control, "counts": check_counts, "files": check_files,
          "equal": check_equal, "failures": check_failures, "emulator": check_emulator}
for group in [option for option in OPTIONS if option != "--long"] or GROUPS:
    GROUPS[group]()
print(f"{count} runs, {len(failures)} failed")
sys.exit(bool(failures))
