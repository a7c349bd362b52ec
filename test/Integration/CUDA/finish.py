"""finish.py RUNNER DIR: the kernel of two passes that adds slices, on the emulator.

Each case has as many slices as a row of its data is long, less what a thread adds at once. Results must pass --check,
and the threads of the kernel may have a limited number of instructions, on average, which does not grow with the
slices as long as 64 threads share them. Prints `N executions, 0 failed`.
"""

import math
import os
import sys

from programs import Case, check, run, two_pass

# (case, slices, threads for a channel, instructions of a thread)
CASES = [
    # One slice, and as many as one thread adds at once: no tree.
    (Case((4, 64), two_pass(threads=32, blocks=1)), 1, 1, 300),
    (Case((32, 64), two_pass(threads=32, blocks=8)), 8, 1, 400),
    # One more: a pair of threads, the last of whose slices is missing.
    (Case((36, 64), two_pass(threads=32, blocks=9), chip="sm_75"), 9, 2, 400),
    # The slices of one tile on 132 multiprocessors.
    (Case((1056, 64), two_pass(threads=32, blocks=264)), 264, 64, 400),
    (Case((1056, 64), two_pass(threads=32, blocks=264), data="f64", parameter="f64", chip="sm_80"), 264, 64, 400),
    (Case((3, 66 * 1024), two_pass(threads=32, blocks=792), features=(0,), data="bf16", chip="sm_80"), 66, 16, 400),
    # More than 64 threads add at once; their last round is partly empty.
    (Case((2400, 5), two_pass(threads=32, blocks=600, bits=64)), 600, 64, 600),
    # Sizes that are known at run time: 64 threads, whether or not there are slices for them.
    (Case((4, 64), two_pass(threads=32, blocks=264), dynamic=True), 1, 64, 400),
    (Case((1056, 64), two_pass(threads=32, blocks=264), dynamic=True, mask=True), 264, 64, 600),
]


def main():
    runner, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    failed = 0
    for number, (case, slices, threads, most) in enumerate(CASES):
        done, launches = run(runner, case, os.path.join(directory, f"{number}.mlir"), "--check")
        try:
            # Kernels for vectors and for single elements, if sizes are dynamic.
            case.kernels = tuple(launch["kernel"] for launch in launches)
            check(case, done, launches)
            reduce, finish, _ = launches
            assert finish["kernel"] == "finish", case.kernels
            channels = math.prod(case.shape[feature] for feature in case.features)
            tiles = channels if case.features == (0,) else 1
            assert reduce["grid"][0] == tiles * slices, f"expected {tiles * slices} blocks that add, got {reduce['grid']}"
            columns = max(128 // threads, 8)
            assert finish["block"][0] == threads * columns, f"expected {threads} x {columns} threads, got {finish['block']}"
            assert finish["grid"][0] == -(-channels // columns), f"got {finish['grid']} blocks"
            instructions = finish["instructions"] / (finish["grid"][0] * finish["block"][0])
            print(f"{slices} slices {case.data}: {instructions:.0f} instructions of a thread")
            assert instructions <= most, f"expected at most {most} instructions of a thread"
        except AssertionError as error:
            failed += 1
            print(f"FAILED {case}\n{error}")
    print(f"{len(CASES)} executions, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
