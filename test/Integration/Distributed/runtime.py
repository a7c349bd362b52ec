"""runtime.py openmpi|mpich PROCESSES CALLER [--long]: sums over processes without a compiler, and failures. Without
--long, a part of them.

Under Open MPI, whose --enable-recovery lets the others live, every process that is left must report each failure.
MPICH ends a job with its first process that fails, so that some of them may not come to it. Prints the time of each
run and `N runs, 0 failed`.
"""

import re
import sys
import time

from launch import launch

MPI, PROCESSES, CALLER, *OPTIONS = sys.argv[1:]
IS_LONG = "--long" in OPTIONS
OP = "all-reduce of bngrad.batch_norm_backward"
RECOVERY = ["--enable-recovery"] if MPI == "openmpi" else []
KILL, STOP, STAY = 9, 19, 0
failures = []
count = 0


def run(size, command, verify, options=(), program=PROCESSES, **environment):
    global count
    count += 1
    environment = {"BNGRAD_MPI": MPI, "BNGRAD_TIMEOUT": "60"} | environment
    start = time.time()
    status, out, err = launch(MPI, size, [program, *command], options, **environment)
    error = verify(status, out, err)
    print(f"{time.time() - start:6.2f} s  {size} x {' '.join(map(str, command))}")
    if error:
        failures.append(command)
        print(f"FAILED: {error}; got status {status}, output:\n{out}{err}")


def succeeds(size):
    def verify(status, out, err):
        lines = sorted(out.split("\n")[:-1])
        if status != 0 or lines != [f"rank {i}: ok" for i in range(size)]:
            return "expected all processes to be ok"

    return verify


def reports(size, text, lost=None, is_ended=False):
    """Every process but `lost` must report `text`, some if the launcher ends the job."""
    def verify(status, out, err):
        reported = {int(line[1]) for line in re.finditer(r"^rank (\d+): (.*)$", err, re.M)
                    if line[2].startswith(OP) and text in line[2]}
        others = set(range(size)) - {lost}
        if status == "no end" or "too late" in err or "no error" in err:
            return "expected an end in time"
        if RECOVERY and not is_ended and reported != others:
            return f"expected ranks {sorted(others)} to report '{text}', got {sorted(reported)}"
        if not RECOVERY and status == 0:
            return "expected another status than 0"
        if not reported <= others:
            return f"expected no report of rank {lost}"

    return verify


def check_sums():
    grids = [(1, [1]), (3, [3]), (4, [2, 2]), (2, [2]), (4, [4, 1]), (8, [2, 2, 2])]
    for size, grid in grids if IS_LONG else grids[:3]:
        run(size, ["grid", *grid], succeeds(size))
    run(2, ["steps", 20000 if IS_LONG else 2000], succeeds(2))
    if IS_LONG:
        run(4, ["steps", 50], succeeds(4))
    for level in ("single", "multiple") if IS_LONG else ("single",):
        run(3, [level], succeeds(3), program=CALLER)


def check_differences():
    """Processes that differ, before the first all-reduce and after some."""
    texts = {
        "op": "the same op on all processes, got epsilon=1e-05 on ranks 0, 1 and epsilon=0.5 on rank 2",
        "count": "the same number of elements on all processes, got 4 on ranks 0, 1 and 6 on rank 2",
        "dtype": "the same element type on all processes, got f64 on ranks 0, 1 and f32 on rank 2",
        "grid": "the same grid on all processes, got 3 on ranks 0, 1 and 3x1 on rank 2",
    }
    for i, (kind, text) in enumerate(texts.items()):
        run(3, ["differ", kind, 5 * (i % 2)], reports(3, f" at f.mlir:1:2: expected {text}"), RECOVERY)


def check_lost():
    """Processes that end or stop: at the beginning and later, the root and another one."""
    missing, no_answer = "expected all processes to start it within 1 s, got nothing from rank 1", "expected rank 0 to answer"
    cases = [(1, 0, STAY, missing), (0, 3, KILL, no_answer), (1, 3, KILL, missing)]
    for lost, steps, how, text in cases if IS_LONG else cases[:2]:
        run(3, ["lost", lost, steps, how], reports(3, text, lost), RECOVERY)
    # Without recovery both launchers end the job, also the process that has stopped.
    run(3, ["lost", 1, 3, STOP], reports(3, missing, 1, is_ended=True))


def check_launch():
    """The wrong number of processes, and no back end."""
    def is_refused(text):
        return lambda status, out, err: None if status not in (0, "no end") and text in err else f"expected '{text}'"

    run(3, ["grid", 2], is_refused("expected 2 processes for the grid 2, got 3"))
    run(2, ["steps", 1], is_refused("cannot load the back end: /none.so"), BNGRAD_MPI="/none.so")
    run(2, ["steps", 1], is_refused("expected the MPI to be openmpi, mpich or the path"), BNGRAD_MPI="lam")
    # One process never comes to MPI.
    run(1, ["steps", 1, ":", "-n", 1, "sleep", 3], is_refused("expected all processes to initialize MPI within 1 s"),
        BNGRAD_TIMEOUT="1")
    run(2, ["steps", 1], is_refused("BNGRAD_TIMEOUT: expected seconds, more than 0"), BNGRAD_TIMEOUT="never")


check_sums()
check_differences()
check_lost()
check_launch()
print(f"{count} runs, {len(failures)} failed")
sys.exit(bool(failures))
