#!/usr/bin/env python3
"""Makes the first, second, third ... allocation fail; see fuzz/libfuzzer/README.md.

  hunt.py BUILD_DIR [--only=compiled|runtime|tools] [--most=N] [--seed=N]

`compiled`: functions of bngrad-compile, in which every allocation fails once.
They must return a status, or the results that they give without a failure, and
free what they have. `runtime`: lib/Runtime, over the driver of the unit tests,
and the emulator of PTX, which must be usable afterwards. `tools`: bngrad-opt,
-runner, -compile and ptx-emulator. They must exit with 0 and their whole output, or with 1, one line, and
no output in part.

The last line is `allocations: N failed, M faults`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from schedule_kinds import read_kinds  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 60
MIB = 1 << 20

GRADIENT = """func.func @f(%dy: tensor<{n}x{c}x{s}x{t}>, %x: tensor<{n}x{c}x{s}x{t}>, %m: tensor<{c}xf32>, %v: tensor<{c}xf32>)
    -> (tensor<{n}x{c}x{s}x{t}>, tensor<{c}xf32>, tensor<{c}xf32>) {{
  {before}
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output({dy} : tensor<{n}x{c}x{s}x{t}>)
      input(%x : tensor<{n}x{c}x{s}x{t}>) mean(%m : tensor<{c}xf32>) variance(%v : tensor<{c}xf32>)
      {{feature_dims = array<i64: {feature}>, epsilon = 1.0e-5 : f64}}
      : tensor<{n}x{c}x{s}x{t}>, tensor<{c}xf32>, tensor<{c}xf32>
  return %dx, %dg, %db : tensor<{n}x{c}x{s}x{t}>, tensor<{c}xf32>, tensor<{c}xf32>
}}
"""
# A sum over a dim that does not tell channels apart leaves a temporary.
REDUCED = """%z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{n}x{s}x{t}>
  %fill = linalg.fill ins(%z : f32) outs(%e : tensor<{n}x{s}x{t}>) -> tensor<{n}x{s}x{t}>
  %sum = linalg.reduce {{ arith.addf }} ins(%dy : tensor<{n}x{c}x{s}x{t}>) outs(%fill : tensor<{n}x{s}x{t}>) dimensions = [1]
  %b = tensor.empty() : tensor<{n}x{c}x{s}x{t}>
  %w = linalg.broadcast ins(%sum : tensor<{n}x{s}x{t}>) outs(%b : tensor<{n}x{c}x{s}x{t}>) dimensions = [1]"""

CALLER = """#include "f.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void failAllocation(long);
long countAllocations(void);
long countLiveAllocations(void);
static float dy[%(data)d], x[%(data)d], m[%(channels)d], v[%(channels)d];
static float out[2][%(data)d + 2 * %(channels)d];
static int call(float *to) {
  memset(to, 0x55, sizeof(out[0]));
  return f(dy, x, m, v, to, to + %(data)d, to + %(data)d + %(channels)d);
}
int main(int argc, char **argv) {
  (void)argc;
  for (int i = 0; i < %(data)d; ++i)
    dy[i] = (i * 37 %% 64) / 32.f - 1, x[i] = (i * 53 %% 128) / 64.f - 1;
  for (int i = 0; i < %(channels)d; ++i)
    m[i] = i / 16.f, v[i] = 1 + i / 8.f;
  if (call(out[0]) != 0)
    return 4;
  failAllocation(atol(argv[1]));
  int status = call(out[1]);
  long allocations = countAllocations(), live = countLiveAllocations();
  failAllocation(0);
  printf("allocations=%%ld live=%%ld errors=%%d status=%%d\\n", allocations, live, status != 0, status);
  return status == 0 && memcmp(out[0], out[1], sizeof(out[0])) != 0 ? 3 : 0;
}
"""

# Doubles each element.
KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry f(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  mul.wide.s32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f1, %f1, %f1;
  st.global.f32 [%rd3], %f1;
  ret;
}
"""


class Hunter:
    """Counts failures and prints them."""

    def __init__(self, build: Path, scratch: Path, most: int, seed: int):
        self.build, self.scratch, self.most, self.seed = build, scratch, most, seed
        self.failed = self.faults = 0
        self.inputs: set[str] = set()
        self.library = scratch / "libfailallocations.so"
        self.compiler = next((each for each in ("clang++-22", "clang++", "g++") if shutil.which(each)), "c++")
        self.run([self.compiler, "-shared", "-fPIC", "-O1", "-o", self.library, HERE / "FailAllocations.cpp", "-ldl"])

    @staticmethod
    def run(command: list) -> None:
        done = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=10 * SECONDS)
        if done.returncode != 0:
            sys.exit(f"allocations: error: {' '.join(map(str, command))}: {done.stderr.strip()}")

    def fault(self, what: str) -> None:
        self.faults += 1
        print(f"allocations: fault: {what}", flush=True)

    def call(self, command: list, **variables: object) -> subprocess.CompletedProcess | None:
        # By its name, as the variable parts paths at spaces.
        env = dict(os.environ, LD_PRELOAD=f"./{self.library.name}", BNGRAD_CUDA_DRIVER="libfakecuda.so",
                   **{name: str(value) for name, value in variables.items()})
        try:
            return subprocess.run([str(each) for each in command], capture_output=True, text=True, env=env,
                                  cwd=self.scratch, stdin=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def numbers(self, count: int) -> list[int]:
        """All, or `most` of them, spread out: the first and the last for seed 0."""
        if count <= self.most:
            return list(range(1, count + 1))
        offset = self.seed * 2654435761
        return sorted({1 + (i * (count - 1) // (self.most - 1) + offset) % count for i in range(self.most)})

    def try_driver(self, name: str, command: list, **variables: object) -> None:
        """A program whose argument is the number, and which prints what came of it."""
        def parse(done: subprocess.CompletedProcess | None) -> dict[str, int]:
            return {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", done.stdout)} if done else {}

        whole = self.call([*command, 0], **variables)
        expected = parse(whole)
        if not expected or whole.returncode != 0:
            return self.fault(f"{name}: without a failure: {whole.stderr.strip() if whole else 'no end'}")
        for forever in (0, 1):
            for number in self.numbers(expected["allocations"]):
                done = self.call([*command, number], FAIL_ALLOCATION_FOREVER=forever, **variables)
                self.failed += 1
                here = f"{name}: allocation {number}{' and all after it' if forever else ''}: "
                got = parse(done)
                if not done or done.returncode < 0 or not got:
                    how = "no end" if not done else f"exit {done.returncode}: {done.stderr.strip()[-200:]}"
                    self.fault(here + "expected a status, got " + how)
                elif done.returncode != 0:
                    self.fault(here + "expected a status or the results, got others")
                elif got["live"] > expected["live"]:
                    self.fault(here + f"expected {expected['live']} blocks to be left, got {got['live']}")

    def compiled(self) -> None:
        cases = []
        for layout, sizes in (("nchw", (4, 3, 64)), ("nhwc", (8, 16, 24)), ("few", (64, 2, 40))):
            n, c, s = sizes
            n, c, s = (n, s, c) if layout == "nhwc" else (n, c, s)
            feature = 2 if layout == "nhwc" else 1
            shape = {"n": n, "c": c, "s": s, "t": "f32", "feature": feature}
            kinds = [f"{kind.name}, threads = 2" if kind.parameters else kind.name
                     for kind in read_kinds(self.build / "bin" / "bngrad-opt") if kind.target != "gpu"]
            for schedule in ["", *kinds]:
                cases.append((f"{layout} {schedule or 'chosen'}", shape, schedule, "", "%dy"))
            # Sizes of `mean` are those of the feature dim.
            if layout != "nhwc":
                cases.append((f"{layout} with a temporary", shape, "", REDUCED, "%w"))
        for number, (name, shape, schedule, before, dy) in enumerate(cases):
            text = GRADIENT.format(before=before.format(**shape), dy=dy, **shape)
            channels = shape["s"] if shape["feature"] == 2 else shape["c"]
            if shape["feature"] == 2:
                text = text.replace(f"tensor<{shape['c']}xf32>", f"tensor<{channels}xf32>")
            folder = self.scratch / f"compiled{number}"
            folder.mkdir()
            (folder / "f.mlir").write_text(text)
            option = [f"--schedule=#bngrad.schedule<{schedule}>"] if schedule else ["--threads=2"]
            self.run([self.build / "bin" / "bngrad-compile", folder / "f.mlir", "-o", folder / "libunderhunt.so",
                      f"--header={folder}/f.h", *option])
            (folder / "main.c").write_text(CALLER % {
                "data": shape["n"] * shape["c"] * shape["s"], "channels": channels})
            self.run([self.compiler.replace("++", ""), "-O1", "-o", folder / "main", folder / "main.c",
                      folder / "libunderhunt.so", self.library, f"-Wl,-rpath,{folder}:{self.scratch}"])
            self.try_driver(f"compiled {name}", [folder / "main"], FAIL_ALLOCATION_IN="libunderhunt")

    def runtime(self) -> None:
        fake = self.build / "unittests" / "Runtime" / "Cuda"
        for library in ("CudaRuntime", "CudaEmulator"):
            program = self.scratch / library
            self.run([self.compiler, "-std=c++17", "-O1", f"-I{ROOT}/include", "-o", program,
                      HERE / "RuntimeScenarios.cpp", self.build / "lib" / "libBNGradReference.a",
                      self.build / "lib" / f"libBNGrad{library}.so", f"-Wl,-rpath,{self.build}/lib:{fake}", "-ldl"])
            files = ("write", "read") if library == "CudaRuntime" else ()
            for scenario in (*files, "launch", "images", "copies"):
                self.try_driver(f"{library} {scenario}", [program, scenario], LD_LIBRARY_PATH=fake)

    def tools(self) -> None:
        large, small, temporary = (self.scratch / f"{name}.mlir" for name in ("large", "small", "temporary"))
        shape = {"n": 64, "c": 64, "s": 128, "t": "f32", "feature": 1}
        large.write_text(GRADIENT.format(before="", dy="%dy", **shape))
        temporary.write_text(GRADIENT.format(before=REDUCED.format(**shape), dy="%w", **shape))
        shape |= {"n": 4, "c": 3, "s": 16}
        small.write_text(GRADIENT.format(before="", dy="%dy", **shape))
        kernel = self.scratch / "kernel.ptx"
        kernel.write_text(KERNEL)
        arguments = [f"--arg=random:{i}" for i in range(4)]
        runner, compile, opt, emulator = (
            self.build / "bin" / name for name in ("bngrad-runner", "bngrad-compile", "bngrad-opt", "ptx-emulator"))
        # Large allocations are few and our own, small ones mostly LLVM's.
        commands = {
            "bngrad-runner": (MIB, [runner, large, *arguments, "--threads=2", "--result=out.npy"]),
            "bngrad-runner with a temporary": (MIB, [runner, temporary, *arguments, "--threads=2"]),
            "bngrad-runner --check": (MIB, [runner, large, *arguments, "--check", "--threads=2"]),
            "bngrad-runner --benchmark": (MIB, [runner, large, *arguments, "--benchmark=1", "--threads=2"]),
            "bngrad-runner, emulator": (MIB, [runner, large, *arguments, "--target=cuda-emulator"]),
            "bngrad-runner, any": (1, [runner, small, *arguments, "--check", "--threads=2", "--result=out.npy"]),
            "bngrad-runner, emulator, any": (
                1, [runner, small, *arguments, "--target=cuda-emulator", "--result=out.npy"]),
            "bngrad-compile, any": (1, [compile, small, "-o", "out.so", "--header=out.h"]),
            "bngrad-compile, CUDA, any": (1, [compile, small, "-o", "out.o", "--target=cuda", "--format=isa"]),
            "bngrad-opt, any": (1, [opt, small, "--bngrad-cpu-pipeline", "-o", "out.mlir"]),
            "ptx-emulator, any": (1, [emulator, kernel, "--kernel=f", "--grid=8", "--block=128",
                                      "--arg=buffer:f32:1024:iota", "--dump=0:out.raw"]),
        }
        for name, (least, command) in commands.items():
            self.try_tool(name, least, command)

    def take_outputs(self) -> dict[str, bytes]:
        """What the last command left, which is gone then."""
        outputs = {}
        for path in sorted(self.scratch.iterdir()):
            if path.name not in self.inputs:
                outputs[path.name] = path.read_bytes()
                path.unlink()
        return outputs

    def try_tool(self, name: str, least: int, command: list) -> None:
        """Allocations of `least` bytes and more fail."""
        report = self.scratch / "report"
        report.touch()
        self.inputs = {path.name for path in self.scratch.iterdir()}
        common = {"FAIL_ALLOCATION_BYTES": least, "FAIL_ALLOCATION_REPORT": report}
        whole = self.call(command, **common)
        if not whole or whole.returncode != 0 or not report.read_text():
            return self.fault(f"{name}: without a failure: {whole.stderr.strip() if whole else 'no end'}")
        expected = self.take_outputs()
        for index, number in enumerate(self.numbers(int(report.read_text()))):
            forever = index % 2
            done = self.call(command, FAIL_ALLOCATION=number, FAIL_ALLOCATION_FOREVER=forever, **common)
            self.failed += 1
            here = f"{name}: allocation {number}{' and all after it' if forever else ''}: "
            outputs = self.take_outputs()
            if not done or done.returncode not in (0, 1):
                how = "no end" if not done else f"exit {done.returncode}: {done.stderr.strip()[:200]}"
                self.fault(here + "expected 0 or 1, got " + how)
            elif done.returncode == 1 and len(done.stderr.strip().splitlines()) != 1:
                self.fault(here + f"expected one line, got '{done.stderr.strip()[:300]}'")
            elif done.returncode == 0 and outputs != expected:
                self.fault(here + f"expected {', '.join(expected)} as without a failure")
            elif done.returncode == 1 and any(expected.get(each) != outputs[each] for each in outputs):
                self.fault(here + f"expected no output or a whole one, got {', '.join(outputs)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="a build without sanitizers")
    kinds = ("compiled", "runtime", "tools")
    parser.add_argument("--only", choices=kinds)
    parser.add_argument("--most", type=int, default=40, help="of the allocations of each program (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="which of them, if there are more (default: 0)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        hunter = Hunter(arguments.build.resolve(), Path(name), max(2, arguments.most), arguments.seed)
        for kind in [arguments.only] if arguments.only else kinds:
            getattr(hunter, kind)()
    print(f"allocations: {hunter.failed} failed, {hunter.faults} faults")
    return int(hunter.faults > 0 or hunter.failed == 0)


if __name__ == "__main__":
    sys.exit(main())
