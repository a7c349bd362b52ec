"""emulator.py RUNNER DIR [--long]: runs gradients and forward passes on the emulator; each must pass --check without an error
of the emulator.

Schedules of large shapes are forced on small data. Every case lists the kernels that must run and, for one-pass
kernels, the form of their copies. Prints the time of the slowest case and `N executions, 0 failed`.
"""

import dataclasses
import os
import re
import sys
import time
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[3] / folder) for folder in ("bench", "bench/gpu")]

from items import SCHEDULES  # noqa: E402
from programs import Case, check, one_pass, run, two_pass  # noqa: E402

TYPES = ["f32", "bf16", "f16", "f64"]
BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8}
TWO_PASS = ("reduce", "finish", "apply")


def one_pass_forms(form, data, cluster):
    """A one-pass case; the cluster does not divide the rows, or has more blocks than rows."""
    rows = 3 if data == "f16" else 13
    lanes = 16 // BYTES[data]
    parameter = "f64" if data == "f64" else "f32"
    common = dict(data=data, parameter=parameter)
    if form == "channel":
        return Case((rows, 5, 4 * lanes), one_pass(cluster=cluster), copy="bulk", **common)
    if form == "channel-odd":
        return Case((rows, 5, 37), one_pass(cluster=cluster), copy="elements", **common)
    if form == "warps":
        return Case((rows, 6, 2 * lanes), one_pass(columns=3, cluster=cluster, threads=64), copy="bulk", **common)
    if form == "warps-odd":
        return Case((rows, 15, 7), one_pass(columns=5, cluster=cluster, threads=64), copy="elements", **common)
    if form == "columns":
        return Case((rows, 5, 3 * lanes), one_pass(columns=3 * lanes, cluster=cluster), features=(2,), copy="bulk",
                    **common)
    if form == "columns-pieces":
        return Case((rows, 5, 3 * lanes), one_pass(columns=2 * lanes, cluster=cluster), features=(2,), copy="pieces",
                    **common)
    assert form == "columns-odd"
    return Case((rows, 5, 13), one_pass(columns=8, cluster=cluster), features=(2,), copy="elements", **common)


FORMS = ["channel", "channel-odd", "warps", "warps-odd", "columns", "columns-pieces", "columns-odd"]
# Shapes for cases that do not depend on the form: rows of elements, and innermost channels.
ROWS, COLUMNS = dict(shape=(5, 6, 32)), dict(shape=(7, 5, 16), features=(2,))
ROWS_ODD, COLUMNS_ODD = dict(shape=(5, 6, 31)), dict(shape=(7, 5, 13), features=(2,))
BOTH = [(ROWS, one_pass(cluster=2)), (COLUMNS, one_pass(columns=16, cluster=2)), (ROWS, two_pass()),
        (COLUMNS, two_pass())]


def quick_cases():
    for i, form in enumerate(FORMS):
        yield one_pass_forms(form, TYPES[i % 4], [1, 2, 4, 8][(i + 1) % 4])
    for i, shape in enumerate([ROWS, ROWS_ODD, COLUMNS, COLUMNS_ODD]):
        yield Case(**shape, schedule=two_pass(), chip=["sm_75", "sm_80"][i % 2], data=TYPES[i],
                   parameter="f64" if i == 3 else "f32")
    # Those that every kind has.
    for i, schedule in enumerate(filter(None, SCHEDULES.values())):
        yield Case((33, 16, 4, 4), schedule, data=TYPES[i % 3])
    # Chosen by the chip. Then sizes that are not a multiple of a vector.
    yield Case(**ROWS, kernels=("one_pass",))
    yield Case(**ROWS, chip="sm_80", kernels=TWO_PASS)
    yield Case(**COLUMNS, chip="sm_100", kernels=("one_pass",))
    yield Case((4, 3, 8), kernels=TWO_PASS, dynamic=True, mask=True)
    yield Case((4, 3, 7), kernels=("reduce_0", "finish", "apply_0"), dynamic=True, statistics="global")
    # A part of a row for each block, where vectors do not fit: 3 parts, the last one shorter, and a row that is one.
    yield Case((3, 4, 2501), two_pass(threads=64), data="bf16", producer="factor", consumer="add")
    yield Case((2, 3, 5, 130), two_pass(threads=64), features=(2,), crops=("dy",), cropped=(3,))
    # A thread for an innermost channel: 4 rows of 13 channels, of which the last block has a part; more than threads.
    yield Case((70, 13), two_pass(threads=64), data="bf16", producer="residual", consumer="add")
    yield Case((7, 67), two_pass(threads=64), data="f16", mask=True)
    # A single channel, whose sums of 3 warps are a vector of four.
    yield Case((100, 1), two_pass(threads=96))
    # Optional operands of a gradient.
    yield Case(**ROWS, schedule=one_pass(), mask=True, inv_std=True, scale=False)
    yield Case(**COLUMNS, schedule=two_pass(), mask=True, data="bf16")
    yield Case(**COLUMNS, schedule=one_pass(columns=16), statistics="global")
    yield Case(**ROWS, schedule=two_pass(), used=(1, 2), inv_std=True)
    yield Case(**ROWS, schedule=one_pass(cluster=4), producer="relu", consumer="add")
    yield Case(**COLUMNS, schedule=two_pass(), producer="residual", consumer="truncate")
    yield Case(**ROWS, schedule=one_pass(columns=2), data="bf16", results=("f32", "f64", "f16"))
    yield Case((6, 4, 3, 5), features=(0, 2), kernels=TWO_PASS)
    yield Case((0, 4, 3), kernels=())
    yield Case((1, 1, 1), kernels=("one_pass",))
    # Clusters that each kernel must be allowed to have; their blocks' sums are shared among all lanes of a slot, or some.
    yield one_pass_forms("warps", "f32", 16)
    yield one_pass_forms("columns", "bf16", 16)
    yield from flat_cases()
    yield from stage_cases()
    yield from training_cases()
    # Parts of larger tensors, which are dense on the device.
    yield Case((4, 6, 8, 8), crops=("dy",), cropped=(2, 3), kernels=("one_pass",))
    yield Case((4, 5, 6, 8), features=(3,), crops=("dy", "x"), cropped=(1, 3), step=2, kernels=("one_pass",))


def flat_cases():
    """Rows that are divided into pieces together with those of other channels. Clusters and threads do not divide the
    rows; some threads have no piece."""
    yield Case((13, 8, 7, 7), one_pass(columns=4, cluster=2, threads=160), copy="bulk")
    yield Case((30, 8, 7, 7), one_pass(columns=8, threads=128), data="bf16", copy="bulk")
    yield Case((3, 16, 7, 7), one_pass(columns=8, cluster=4, threads=96), data="f16", copy="bulk")
    yield Case((9, 4, 14, 14), one_pass(columns=2, cluster=2, threads=160), data="bf16", copy="bulk")
    yield Case((5, 4, 13, 17), one_pass(columns=4, threads=224), copy="bulk")
    yield Case((13, 4, 5), one_pass(columns=2, cluster=2, threads=32), data="f64", parameter="f64", copy="bulk")
    # Every kind of operand: data in memory, a mask, values and indices of places, channels and samples.
    yield Case((9, 32, 7), one_pass(columns=16, threads=64), data="bf16", mask=True, copy="bulk")
    yield Case((9, 8, 7), one_pass(columns=4, threads=64), producer="residual", consumer="add")
    yield Case((9, 8, 7), one_pass(columns=4, threads=64), producer="weights")
    yield Case((9, 8, 7), one_pass(columns=4, cluster=2, threads=64), producer="factor", results=("f16", "f64", "f32"))
    # Rows of a block that do not fill pieces, or have more than the block has threads.
    yield Case((9, 8, 7), one_pass(columns=2, threads=64), copy="elements")
    yield Case((2, 4, 33), one_pass(columns=4, threads=32), copy="bulk")


def stage_cases():
    """Data that come in stages of one step of the threads, or of several."""
    # Rows in 2 parts; in 3, as halves are no multiple of 16 bytes; in none, as 67 pieces have no equal parts.
    yield Case((5, 4, 512), one_pass(cluster=2, threads=64), copy="bulk")
    yield Case((5, 4, 360), one_pass(threads=64, bits=64), data="bf16", copy="bulk")
    yield Case((5, 3, 268), one_pass(cluster=2, threads=32), copy="bulk")
    # More steps than stages.
    yield Case((70, 4, 128), one_pass(threads=32), copy="bulk")
    yield Case((290, 24), one_pass(columns=16, cluster=2, threads=32), copy="pieces")
    # The sums read data that the elements do not: they are not on chip.
    yield Case((5, 4, 128), one_pass(threads=64), statistics="global", copy="bulk")
    yield Case((5, 4, 128), one_pass(threads=64), producer="residual", consumer="add", copy="bulk")
    yield Case((5, 4, 128), one_pass(threads=64), producer="factor", copy="bulk")
    yield Case((5, 4, 128), one_pass(threads=64), producer="weights")


def training_cases():
    """The mean and the sums about it, in one kernel whose data stay on chip, or in two passes."""
    for i, form in enumerate(FORMS):
        yield dataclasses.replace(one_pass_forms(form, TYPES[(i + 1) % 4], [1, 2, 4, 8][i % 4]), training=True)
    # Flat rows; data in several stages; rows in parts.
    yield Case((13, 8, 7, 7), one_pass(columns=4, cluster=2, threads=160), copy="bulk", training=True)
    yield Case((30, 8, 7, 7), one_pass(columns=8, threads=128), data="bf16", copy="bulk", training=True)
    yield Case((5, 4, 512), one_pass(cluster=2, threads=64), copy="bulk", training=True)
    yield Case((290, 24), one_pass(columns=16, cluster=2, threads=32), copy="pieces", training=True)
    # Neighbours that are computed for each of the three readers of the data.
    yield Case(**ROWS, schedule=one_pass(cluster=2), producer="relu", consumer="add", training=True)
    yield Case(**COLUMNS, schedule=one_pass(columns=16, cluster=2), producer="cast", consumer="truncate", training=True)
    yield Case(**ROWS, schedule=one_pass(columns=2), scale=False, data="bf16", results=("f32", "f64", "f16"),
               training=True)
    yield Case(**ROWS, schedule=two_pass(), producer="relu", training=True)
    # Without elements, there are no data to keep on chip.
    yield Case(**ROWS, used=(1, 2), training=True)
    yield Case((1, 3, 1), kernels=("one_pass",), training=True)
    # A channel alone, whose index is a constant.
    yield Case((5, 1, 300), two_pass(threads=64, blocks=4), training=True)
    for i, shape in enumerate([ROWS, ROWS_ODD, COLUMNS, COLUMNS_ODD]):
        yield Case(**shape, schedule=two_pass(), chip=["sm_75", "sm_80"][i % 2], data=TYPES[i],
                   parameter="f64" if i == 3 else "f32", training=True)


def long_training_cases():
    for form in FORMS:
        for data in TYPES:
            for cluster in (1, 2, 4, 8, 16):
                yield dataclasses.replace(one_pass_forms(form, data, cluster), training=True)
    for case in flat_cases():
        if not case.mask and case.producer in ("", "relu"):
            yield dataclasses.replace(case, training=True, copy="", consumer="")
    for data in TYPES:
        parameter = "f64" if data == "f64" else "f32"
        for shape in (ROWS, ROWS_ODD, COLUMNS, COLUMNS_ODD, dict(shape=(9, 3, 500)), dict(shape=(200, 3)),
                      dict(shape=(3, 100)), dict(shape=(40, 72))):
            yield Case(**shape, schedule=two_pass(threads=64, columns=8), data=data, parameter=parameter,
                       chip="sm_75", training=True)
    for shape, schedule in BOTH:
        for used in [(0,), (1,), (2,), (3,), (0, 1), (0, 3), (1, 2)]:
            if 0 in used or schedule.startswith("two_pass"):
                yield Case(**shape, schedule=schedule, used=used, training=True)
        for data, parameter, results in [("bf16", "bf16", ()), ("f32", "f64", ("f32", "f64", "f16")),
                                         ("f16", "f64", ("f64", "f16", "f64"))]:
            yield Case(**shape, schedule=schedule, data=data, parameter=parameter, results=results, training=True)


def long_cases():
    yield from long_training_cases()
    for case in flat_cases():
        for threads in (32, 512):
            yield dataclasses.replace(case, schedule=re.sub(r"block_threads = \d+", f"block_threads = {threads}",
                                                            case.schedule))
        for bits in (64, 128):
            for mask in (False, True):
                yield dataclasses.replace(case, mask=mask, copy="", inv_std=True, statistics="global",
                                          schedule=re.sub(r"access_bits = \d+", f"access_bits = {bits}", case.schedule))
    for form in FORMS:
        for data in TYPES:
            case = one_pass_forms(form, data, 2)
            for cropped in ((0,), (1,), (2,), (0, 1, 2)):
                for crops, step in ((("dy",), 1), (("x",), 2), (("dy", "x"), 1)):
                    yield dataclasses.replace(case, crops=crops, cropped=cropped, step=step)
    for form in FORMS:
        for data in TYPES:
            for cluster in (1, 2, 4, 8, 16):
                yield one_pass_forms(form, data, cluster)
    # Two passes in every type; several blocks for a channel, and tiles of columns that do not divide the row.
    for data in TYPES:
        parameter = "f64" if data == "f64" else "f32"
        for shape in (ROWS, ROWS_ODD, COLUMNS, COLUMNS_ODD, dict(shape=(9, 3, 500)), dict(shape=(200, 3)),
                      dict(shape=(3, 100)), dict(shape=(40, 72))):
            yield Case(**shape, schedule=two_pass(threads=64, columns=8), data=data, parameter=parameter,
                       chip="sm_75")
    # Mixed types.
    for data, parameter, results in [("bf16", "bf16", ()), ("f16", "f16", ("f16", "f32", "f32")),
                                     ("bf16", "f32", ("f32", "f32", "bf16")), ("f32", "f64", ("f32", "f64", "f16")),
                                     ("f32", "bf16", ("f64", "bf16", "f32")), ("f64", "f32", ("bf16", "f64", "f64")),
                                     ("f16", "f64", ("f64", "f16", "f64"))]:
        for shape, schedule in BOTH:
            yield Case(**shape, schedule=schedule, data=data, parameter=parameter, results=results)
    # Absent operands and unused results.
    for used in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]:
        for shape, schedule in BOTH:
            # Without sums there are no data to keep on chip.
            if schedule.startswith("two_pass") or used in [(0, 1), (0, 2)]:
                yield Case(**shape, schedule=schedule, used=used, statistics="global", mask=True)
            if schedule.startswith("two_pass") or 0 in used:
                yield Case(**shape, schedule=schedule, used=used)
    for shape, schedule in BOTH:
        for options in (dict(scale=False), dict(inv_std=True), dict(mask=True), dict(statistics="global"),
                        dict(mask=True, statistics="global", scale=False, inv_std=True),
                        dict(data="bf16", mask=True)):
            yield Case(**shape, schedule=schedule, **options)
    # Fused neighbours.
    for producer in ["residual", "relu", "cast", "factor"]:
        for consumer in ["", "negate", "add", "truncate"]:
            for shape, schedule in BOTH:
                # A factor per sample keeps the loops over samples and rows separate, which one_pass does not support.
                if producer == "factor" and "features" in shape and schedule.startswith("one_pass"):
                    schedule = ""
                yield Case(**shape, schedule=schedule, producer=producer, consumer=consumer,
                           kernels=None if schedule else TWO_PASS)
    # Ranks, features, sizes. Without reduced dims no value is per-channel, and the host computes the
    # gradient.
    for shape, features in [((7,), (0,)), ((6, 5), (0, 1)), ((2, 0, 4), (1,)), ((0, 0), (1,)), ((0, 3), (1,)),
                            ((2, 3, 0), (1,))]:
        yield Case(shape, features=features, kernels=())
    for shape, features in [((64, 3), (1,)), ((5, 64), (0,)), ((2, 3, 4, 5), (1,)), ((2, 3, 4, 5), (3,)),
                            ((2, 3, 4, 5), (0,)), ((2, 3, 4, 5), (2,)), ((2, 3, 4, 5), (1, 3)),
                            ((2, 3, 4, 8), (1, 2)), ((2, 3, 2, 3, 5), (1,)), ((2, 3, 2, 3, 8), (4,)),
                            ((2, 3, 2, 3, 2, 4), (1,)), ((2, 3, 2, 3, 2, 4), (5,)), ((2, 3, 2, 3, 2, 4), (0, 2, 5)),
                            ((2, 3, 2, 3, 2, 4), (1, 2, 3, 4, 5)), ((7, 13, 17, 19), (1,)), ((7, 17, 19, 13), (3,)),
                            ((31, 13, 5), (1,)), ((4, 1, 9), (1,)), ((1, 5, 1), (1,)), ((1, 64), (1,)), ((9, 1), (1,)),
                            ((257, 3), (1,)), ((3, 1031), (1,)), ((3, 2, 1031), (1,))]:
        alternates = features in [(1, 3), (0, 2, 5)]
        yield Case(shape, features=features, kernels=TWO_PASS if alternates else ("one_pass",))
        yield Case(shape, features=features, chip="sm_80", kernels=TWO_PASS)
        yield Case(shape, two_pass(threads=64, columns=4, blocks=7), features=features, data="bf16")
    # Dynamic sizes: vectors if they divide the row.
    for shape in [(8, 3, 16), (8, 3, 15), (1, 1, 1), (5, 7, 64), (2, 3, 1031)]:
        kernels = TWO_PASS if shape[-1] % 16 == 0 else ("reduce_0", "finish", "apply_0")
        for data in ("f32", "bf16"):
            common = dict(data=data, dynamic=True, kernels=kernels)
            yield Case(shape, mask=data == "bf16", **common)
            yield Case(shape, features=(2,), chip="sm_80", **common)
            yield Case(shape, features=(0, 2), producer="residual", **common)
    yield Case((0, 3, 4), dynamic=True, kernels=("reduce", "finish"))
    yield Case((0, 3, 4), dynamic=True, kernels=("reduce_0", "finish"), data="bf16", features=(2,))
    yield Case((0, 3, 4), dynamic=True, kernels=(), features=(0, 2))
    # Numbers of threads and lengths of accesses.
    for threads in (32, 96, 256, 512, 1024):
        for bits in (64, 128):
            yield Case((9, 4, 40), one_pass(columns=1, cluster=2, threads=threads, bits=bits))
            yield Case((9, 4, 40), one_pass(columns=4, threads=threads, bits=bits), data="bf16")
            yield Case((9, 4, 40), one_pass(columns=16, cluster=2, threads=threads, bits=bits), features=(2,))
            yield Case((9, 4, 40), two_pass(threads=threads, bits=bits))
            yield Case((9, 4, 40), two_pass(threads=threads, columns=5, bits=bits), features=(2,), data="f64",
                       parameter="f64")
    # Shared memory for sums, next to the data of a block and of 48 KB.
    for case in (Case((13000, 32), one_pass(columns=32, cluster=8, threads=512), data="bf16"),
                 Case((6400, 32), one_pass(columns=32, cluster=8, threads=512), data="bf16", parameter="f64"),
                 Case((64, 64), one_pass(columns=64, threads=1024), data="bf16"),
                 Case((9, 8192), two_pass(columns=1024, threads=1024), data="bf16"),
                 Case((9, 8192), two_pass(columns=512, threads=512), parameter="f64")):
        yield case
    for chip in ("sm_86", "sm_87", "sm_89", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121"):
        for shape in (ROWS, COLUMNS):
            yield Case(**shape, chip=chip, kernels=TWO_PASS if chip < "sm_9" and len(chip) == 5 else ("one_pass",),
                       data="bf16")


def main():
    runner, directory, *options = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    executed = failed = 0
    slowest = (0, None)
    for number, case in enumerate(long_cases() if "--long" in options else quick_cases()):
        start = time.monotonic()
        done, launches = run(runner, case, os.path.join(directory, f"{number}.mlir"), "--check")
        slowest = max(slowest, (time.monotonic() - start, number))
        executed += 1
        try:
            check(case, done, launches)
        except AssertionError as error:
            failed += 1
            print(f"FAILED {number}: {case}\n{error}")
    print(f"slowest: {slowest[1]}.mlir, {slowest[0]:.1f} s\n{executed} executions, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
