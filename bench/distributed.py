#!/usr/bin/env python3
"""Measures all-reduces and gradients of 1 to 8 processes on this machine.

    bench/distributed.py BUILD [--rounds=5] [--output=BASE]

BUILD has bngrad-runner and the back ends. Writes BASE.json and BASE.md, by default build/bench/distributed.*. All
cases take turns in each round, in processes of their own; of the rounds, the least and the median count.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test" / "Integration" / "Distributed"), str(ROOT / "bench")]

from launch import launch  # noqa: E402
from machine import describe  # noqa: E402
from programs import Gradient, random_arguments, write_program  # noqa: E402

# A count; sums of 64 channels, 2048 channels and 131072.
SIZES = [8, 2 * 64 * 4, 2 * 2048 * 4, 1 << 20]
PROCESSES = range(1, 9)
SHAPE = (32, 64, 28, 28)


def compile_all_reduce(build):
    program = build / "bench" / "all_reduce"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", f"-I{ROOT}/include", ROOT / "bench" / "native" / "all_reduce.c", "-o", program,
                    f"-L{build}/lib", "-lBNGradDistributed", f"-Wl,-rpath,{build}/lib"], check=True)
    return program


def run(mpi, size, command):
    status, out, err = launch(mpi, size, command, BNGRAD_MPI=mpi)
    if status != 0:
        sys.exit(f"distributed.py: {' '.join(map(str, command))}: expected status 0, got {status}: {err}")
    return out


def measure_all_reduces(program, mpi, size, times):
    for line in run(mpi, size, [program, 100, *SIZES]).splitlines():
        _, count, least, median = line.split()
        times.setdefault((mpi, size, int(count)), []).append((float(least), float(median)))


def measure_gradient(build, mpi, size, times):
    gradient = Gradient(shape=SHAPE)
    path = build / "bench" / f"distributed{size}.mlir"
    path.write_text(write_program(str(size), [gradient]))
    out = run(mpi, size, [build / "bin" / "bngrad-runner", path, f"--mpi={mpi}", "--benchmark=10",
                          *random_arguments([gradient], [SHAPE])])
    median, least = re.search(r"median_us=(\S+) min_us=(\S+)", out).groups()
    times.setdefault((mpi, size, "gradient"), []).append((float(least), float(median)))


def summarize(times):
    return [{"mpi": mpi, "processes": size, "case": case, "min_us": min(least for least, _ in values),
             "median_us": statistics.median(median for _, median in values)}
            for (mpi, size, case), values in times.items()]


def write_table(results, title, cases, names):
    lines = [title, "", "| processes | " + " | ".join(f"{mpi}, {name}" for mpi in names for name in cases.values()) + " |",
             "|---:|" + "---:|" * len(cases) * len(names)]
    for size in PROCESSES:
        found = {(r["mpi"], r["case"]): r for r in results if r["processes"] == size}
        cells = [f"{r['min_us']:.4g} / {r['median_us']:.4g}" if (r := found.get((mpi, case))) else ""
                 for mpi in names for case in cases]
        if any(cells):
            lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write(measured, output, names):
    with open(output + ".json", "w") as file:
        json.dump(measured, file, indent=1)
        file.write("\n")
    results = measured["results"]
    shape = "x".join(map(str, SHAPE))
    cases = {size: f"{size} B" for size in SIZES}
    with open(output + ".md", "w") as file:
        file.write(f"""# Several processes on one machine

`bench/distributed.py build --rounds={measured['rounds']}`: {measured['cores']} cores, load {measured['load']:.2f} (median of
the rounds, with these processes; other programs ran, too). Microseconds, least / median.

{write_table(results, "One all-reduce of float, from the time of ten, one after the other:", cases, names)}
{write_table(results, f"A gradient of a batch of {shape} f32, which is spread over as many processes as cores:",
             {"gradient": "gradient"}, names)}""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    output = arguments.output or str(build / "bench" / "distributed")
    names = [mpi for mpi in ("openmpi", "mpich") if (build / "lib" / f"libBNGradMPI-{mpi}.so").exists()]
    program = compile_all_reduce(build)
    times, loads = {}, []
    for _ in range(arguments.rounds):
        for mpi in names:
            for size in PROCESSES:
                loads.append(os.getloadavg()[0])
                measure_all_reduces(program, mpi, size, times)
                # A process that waits for the core comes late to the sums, and finds them done.
                if SHAPE[0] % size == 0 and size <= os.cpu_count():
                    measure_gradient(build, mpi, size, times)
    write({"machine": describe(ROOT, 1), "cores": os.cpu_count(), "load": statistics.median(loads),
           "rounds": arguments.rounds, "results": summarize(times)}, output, names)


if __name__ == "__main__":
    main()
