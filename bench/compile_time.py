"""Compile times of cold processes: the tools, and the C library's first gradient.

    python3 bench/compile_time.py [--output=FILE.md] [--rounds=N] [--tools=FOLDER]

Needs the tools and the C library in build/, and clang. All contenders take turns.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = """
func.func @gradient(%dy: DATA, %x: DATA, %s: VECTOR, %m: VECTOR, %v: VECTOR) -> (DATA, VECTOR, VECTOR) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : DATA) input(%x : DATA) scale(%s : VECTOR)
      mean(%m : VECTOR) variance(%v : VECTOR) {feature_dims = array<i64: FEATURE>, epsilon = 1.0e-5 : f64}
      : DATA, VECTOR, VECTOR
  return %0#0, %0#1, %0#2 : DATA, VECTOR, VECTOR
}
"""
# Milliseconds of wall time, on a quiet machine.
GOALS = {"static": 75, "dynamic": 300}


def program(sizes, channels, type, feature):
    """A gradient of the type, with feature dim `feature`."""
    names = {"DATA": f"tensor<{sizes}x{type}>", "VECTOR": f"tensor<{channels}xf32>", "FEATURE": str(feature)}
    text = PROGRAM
    for name, value in names.items():
        text = text.replace(name, value)
    return text


PROGRAMS = {
    "32x64x56x56 NCHW f32": ("static", program("32x64x56x56", 64, "f32", 1)),
    "32x56x56x64 NHWC f32": ("static", program("32x56x56x64", 64, "f32", 3)),
    "32x64x56x56 NCHW bf16": ("static", program("32x64x56x56", 64, "bf16", 1)),
    "?x?x?x? NCHW f32": ("dynamic", program("?x?x?x?", "?", "f32", 1)),
    "?x?x?x? NHWC f32": ("dynamic", program("?x?x?x?", "?", "f32", 3)),
    "?x?x?x? NCHW bf16": ("dynamic", program("?x?x?x?", "?", "bf16", 1)),
}


def arguments_of(name):
    """Arguments of the runner; only dynamic data need sizes."""
    data, vector = ("@2x4x3x4", "@4") if "?" in name else ("", "")
    return [f"--arg=random:{seed}{data if seed < 3 else vector}" for seed in range(1, 6)]


def run(command, **options):
    """The output of a process, and its CPU time in milliseconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return output, 1e3 * (usage.ru_utime + usage.ru_stime)


def measure_round(tools, folder, first_call, times):
    """Appends one time of each contender to `times`."""

    def add(name, wall, cpu):
        times.setdefault(name, []).append((wall, cpu))

    for name, (_, text) in PROGRAMS.items():
        source = folder / "program.mlir"
        source.write_text(text)
        start = time.perf_counter()
        _, cpu = run([tools / "bngrad-compile", source, "-o", folder / "program.o"])
        add(name, 1e3 * (time.perf_counter() - start), cpu)
        output, cpu = run([tools / "bngrad-runner", source, "--benchmark=1", *arguments_of(name)])
        add(name + " in process", float(re.search(r"compile_ms=([\d.]+)", output)[1]), cpu)
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        for name in ("no file of the cache", "a file of the cache"):
            # The program times itself, without the start of the process.
            output, cpu = run([first_call], env=os.environ | {"BNGRAD_CACHE_DIR": cache})
            add(name, float(output), cpu)


def build_first_call(tools, folder):
    """Compiles native/FirstCall.c against the C library beside the tools."""
    libraries = tools.parent / "lib"
    output = folder / "first-call"
    subprocess.run(
        ["clang-22", "-O2", f"-I{ROOT}/include", ROOT / "bench/native/FirstCall.c", "-o", output,
         f"-L{libraries}", "-lBNGradRuntime", f"-Wl,-rpath,{libraries}"],
        check=True,
    )
    return output


def row(name, kind, goal, times):
    walls, cpus = zip(*times)
    return f"| {name} | {kind} | {statistics.median(walls):.3g} | {min(walls):.3g} | {min(cpus):.3g} | {goal} |"


def table(first, rows):
    return ["", f"| {first} | shape | median | least | CPU | goal |", "|---|---|---:|---:|---:|---:|", *rows, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/compile-time.md")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/bin")
    arguments = parser.parse_args()
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        first_call = build_first_call(arguments.tools.resolve(), folder)
        for _ in range(arguments.rounds):
            measure_round(arguments.tools, folder, first_call, times)
    described = machine.describe(ROOT, 1)
    lines = [
        "# Compile times",
        "",
        f"`bench/compile_time.py`: {described['cpu']}, commit `{described['commit']}`, load {described['load']}.",
        f"Wall time in milliseconds, the median and the least of {arguments.rounds} rounds in which all take turns, each",
        "in a new process; *CPU* is the least CPU time of the whole process, which other processes disturb less. Goals",
        "are for a quiet machine.",
        "",
        "In the process, from IR to functions that can be called (`compile_ms` of `bngrad-runner --benchmark`):",
        *table("program", [row(name, kind, GOALS[kind], times[name + " in process"])
                           for name, (kind, _) in PROGRAMS.items()]),
        "`bngrad-compile PROGRAM -o PROGRAM.o`, from the start of the process to its end:",
        *table("program", [row(name, kind, "", times[name]) for name, (kind, _) in PROGRAMS.items()]),
        "The C library, from its first call to the end of the first gradient, of feature dims that no ready",
        "kernel covers ([FirstCall.c](../native/FirstCall.c)):",
        *table("first gradient with", [
            row("no file of the cache", "dynamic", GOALS["dynamic"], times["no file of the cache"]),
            row("a file of the cache", "dynamic", 5, times["a file of the cache"])]),
    ]
    text = "\n".join(lines)
    arguments.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
