"""traffic.py RUNNER DIR [--long]: limits the memory traffic of kernels, which the emulator counts, in tensors.

A tensor is the size of grad_input. For buffers of that size, all traffic is counted, in bytes and in sectors of 32
bytes; sector efficiency is the ratio of the two. Coefficients and partial sums, which stay in caches, count once per
launch that reads them and once per launch that writes them. The requests of all threads, including coefficients, are
also printed, and have the same limit if a block has long rows. Prints `N executions, 0 failed`.
"""

import math
import os
import sys

from programs import Case, check, one_pass, run, two_pass

BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8}
MOST_TENSORS = {"one_pass": 3.05, "two_pass": 5.1}
MOST_TENSORS_OF_TRAINING = {"one_pass": 2.05, "two_pass": 3.1}
LEAST_EFFICIENCY = 0.98
TWO_PASS = ("reduce", "finish", "apply")

# For innermost channels, there are so few blocks that each has as many rows as with large
# shapes.
QUICK = [
    # A block or a cluster for each channel, a warp for each, two passes.
    Case((8, 4, 56, 56), kernels=("one_pass",)),
    Case((64, 16, 64), one_pass(columns=4, threads=256), data="bf16"),
    # Flat rows of whole sectors.
    Case((64, 16, 7, 7), one_pass(columns=8, cluster=2, threads=256), copy="bulk"),
    Case((64, 16, 7, 7), one_pass(columns=16, cluster=2, threads=256), data="bf16", copy="bulk"),
    Case((8, 4, 56, 56), chip="sm_80", kernels=TWO_PASS, data="bf16"),
    # Innermost channels: a tile of all channels, and tiles of a line.
    Case((1024, 32), one_pass(columns=32, cluster=2, threads=256), copy="bulk"),
    Case((512, 128), one_pass(columns=32, cluster=4, threads=256), copy="pieces"),
    Case((2048, 64), two_pass(threads=256, blocks=8), chip="sm_75"),
]
# Forward passes.
QUICK += [
    Case((8, 4, 56, 56), kernels=("one_pass",), training=True),
    Case((64, 16, 7, 7), one_pass(columns=16, cluster=2, threads=256), data="bf16", copy="bulk", training=True),
    Case((512, 128), one_pass(columns=32, cluster=4, threads=256), copy="pieces", training=True),
    Case((8, 4, 56, 56), chip="sm_80", data="bf16", training=True),
    Case((4096, 64), two_pass(threads=256, blocks=8), chip="sm_75", training=True),
]
LONG = [
    Case((32, 4, 28, 28), one_pass(cluster=cluster, threads=256), data=data)
    for data, cluster in [("f32", 1), ("bf16", 2), ("f16", 4), ("f64", 8)]
] + [
    Case((4, 28, 28, 64), one_pass(columns=128 // BYTES[data], cluster=8, threads=256), features=(3,), data=data)
    for data in ("f32", "bf16", "f64")
] + [
    Case((4, 28, 28, 128), two_pass(threads=256, blocks=16), features=(3,), chip=chip, data=data)
    for chip in ("sm_75", "sm_80") for data in ("f32", "bf16", "f64")
] + [
    Case((8, 8, 4096), chip=chip, data=data, kernels=TWO_PASS)
    for chip in ("sm_75", "sm_80") for data in ("f32", "f16", "f64")
] + [
    Case((8, 8, 4096), dynamic=True, kernels=TWO_PASS),
    Case((8192, 64), two_pass(threads=256, blocks=16), dynamic=True, data="bf16"),
    Case((1024, 256), kernels=("one_pass",)),
    Case((2, 32, 64, 64), kernels=("one_pass",), data="f16"),
]


class Traffic:
    """In tensors: off-chip traffic in bytes and in sectors, and requests of threads."""

    def __init__(self, case, launches):
        tensor = math.prod(case.shape) * BYTES[case.data]
        self.bytes = self.sectors = self.asked = 0
        for buffer in [buffer for launch in launches for buffer in launch["buffers"]]:
            for kind in ("load", "store", "bulk_load", "bulk_store"):
                moved, sectors = buffer[f"{kind}_bytes"], 32 * buffer[f"{kind}_sectors"]
                self.asked += moved / tensor
                if buffer["bytes"] < tensor:
                    moved, sectors = min(moved, buffer["bytes"]), min(sectors, buffer["bytes"])
                self.bytes += moved / tensor
                self.sectors += sectors / tensor
        self.efficiency = self.bytes / self.sectors

    def __str__(self):
        return (f"{self.bytes:.3f} tensors, {self.sectors:.3f} in sectors, efficiency {100 * self.efficiency:.1f} %, "
                f"asked for {self.asked:.3f}")


def main():
    runner, directory, *options = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    executed = failed = 0
    for number, case in enumerate(QUICK + LONG if "--long" in options else QUICK):
        done, launches = run(runner, case, os.path.join(directory, f"{number}.mlir"), "--check")
        executed += 1
        try:
            check(case, done, launches)
            traffic = Traffic(case, launches)
            kind = "one_pass" if len(launches) == 1 else "two_pass"
            print(f"{kind}{' training' * case.training} {'x'.join(map(str, case.shape))} {case.data}: {traffic}")
            most = (MOST_TENSORS_OF_TRAINING if case.training else MOST_TENSORS)[kind]
            assert traffic.bytes <= most and traffic.sectors <= most, f"expected at most {most} tensors"
            assert traffic.efficiency >= LEAST_EFFICIENCY, f"expected an efficiency of at least {LEAST_EFFICIENCY}"
            if case.features == (1,) and math.prod(case.shape[2:]) >= 256:
                assert traffic.asked <= most, f"expected threads to ask for at most {most} tensors"
        except AssertionError as error:
            failed += 1
            print(f"FAILED {case}\n{error}")
    print(f"{executed} executions, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
