"""A process for benchmarks of PyTorch: its instruction set, its threads, and memory that it keeps."""

import os
import subprocess
import sys

import instruction_sets
import machine

# Read by the C library when the process starts. Memory that is freed stays with the process, so that nobody pays for
# its pages.
SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 29),
}


def add_isa_option(parser):
    parser.add_argument("--isa", default=os.environ.get("BNGRAD_ISA"),
                        help="a value of BNGRAD_ISA (default: BNGRAD_ISA, or all that the CPU has)")


def restart(isa, threads):
    """Runs this program again with the settings, on `threads` cores, held to the instruction set `isa` unless it is None."""
    settings = SETTINGS | {"OMP_NUM_THREADS": str(threads)}
    if isa:
        settings |= instruction_sets.find(isa).environment
    if all(os.environ.get(name) == value for name, value in settings.items()):
        return
    os.sched_setaffinity(0, machine.choose_cpus(threads))
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)


def find_cpu_isa():
    """The best instruction set of this CPU, which a process finds that is held to none."""
    program = "import bngrad; print(bngrad.explain((4, 3, 5), 'bf16', rounds=1).isa)"
    free = {name: value for name, value in os.environ.items() if name != "BNGRAD_ISA"}
    return subprocess.run([sys.executable, "-c", program], env=free, capture_output=True, text=True, check=True).stdout.strip()


def describe(root, threads):
    """The machine, as `machine.describe`, and the instruction sets of this process and of the CPU."""
    import bngrad

    isa = bngrad.explain((4, 3, 5), "bf16", rounds=1).isa
    return machine.describe(root, threads) | {"isa": isa, "cpu_isa": find_cpu_isa()}
