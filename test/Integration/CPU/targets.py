"""targets.py TOOLS LLVM DIR: compiles gradients ahead of time for several CPUs and runs those that this one
supports.

TOOLS contains bngrad-opt, LLVM/bin the tools of LLVM. Every schedule with vectors is compiled for
AVX-512, AVX2 and baseline x86-64 and compared with numpy in float64, by the bound of docs/numerics.md without its
dependence on the operands: 64 roundings of the largest term. For AArch64, the assembly is checked. Products are fused
with sums if and only if the CPU supports it. Prints `N kernels executed, M compiled, 0 failed`.
"""

import ctypes
import os
import re
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))

from schedule_kinds import read_kinds  # noqa: E402

# Vector bits, whether products are fused with sums, and required CPU features.
X86 = {
    "x86-64-v4": (512, True, "avx512f"),
    "x86-64-v3": (256, True, "fma"),
    "x86-64": (128, False, "sse2"),
}
CASES = {  # shapes and feature dims, by the loops of the schedule
    "end_in_reduced": [((3, 9, 1000), 1), ((4, 3, 9000), 1)],
    "channel_rows": [((5, 40, 49), 1)],
    "rows_of_channels": [((333, 37), 1)],
}
EPSILON = 1e-3


def mlir(shape, feature):
    data = "tensor<" + "x".join(map(str, shape)) + "xf32>"
    channel = f"tensor<{shape[feature]}xf32>"
    return (
        f"func.func @f(%dy: {data}, %x: {data}, %s: {channel}, %m: {channel}, %v: {channel})\n"
        f"    -> ({data}, {channel}, {channel}) attributes {{llvm.emit_c_interface}} {{\n"
        f"  %0:3 = bngrad.batch_norm_backward grad_output(%dy : {data}) input(%x : {data}) scale(%s : {channel})\n"
        f"    mean(%m : {channel}) variance(%v : {channel}) {{epsilon = {EPSILON:e} : f64, feature_dims = array<i64: {feature}>}}\n"
        f"    : {data}, {channel}, {channel}\n"
        f"  return %0#0, %0#1, %0#2 : {data}, {channel}, {channel}\n}}\n"
    )


class Compiler:
    def __init__(self, tools, llvm, directory):
        self.tools, self.llvm, self.directory = tools, llvm, directory

    def run(self, *command, stdin):
        done = subprocess.run(command, input=stdin, capture_output=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode())
        return done.stdout

    def assembly(self, kind, shape, feature, bits, fma, *target):
        # Streamed, and in two shares.
        schedule = f"#bngrad.schedule<{kind}, threads = 2, vector_bits = {bits}, streaming_bytes = 1, fma = {str(fma).lower()}>"
        ir = self.run(f"{self.tools}/bngrad-opt", f"--bngrad-cpu-pipeline=schedule={{{schedule}}}",
                      stdin=mlir(shape, feature).encode())
        ir = self.run(f"{self.llvm}/bin/mlir-translate", "--mlir-to-llvmir", stdin=ir)
        ir = self.run(f"{self.llvm}/bin/opt", "-O2", *target, stdin=ir)
        return self.run(f"{self.llvm}/bin/llc", "-O2", "--relocation-model=pic", *target, "-o", "-", stdin=ir)

    def load(self, name, assembly):
        path = os.path.join(self.directory, name)
        with open(path + ".s", "wb") as file:
            file.write(assembly)
        self.run(f"{self.llvm}/bin/clang", "-shared", path + ".s", "-o", path + ".so", "-lm", stdin=b"")
        return ctypes.CDLL(path + ".so")._mlir_ciface_f


def descriptor(array):
    """A memref descriptor: allocated and aligned pointer, offset, sizes, strides."""
    strides = [s // array.itemsize for s in array.strides]
    return np.array([array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides], dtype=np.int64)


def check(function, shape, feature):
    random = np.random.default_rng(1)
    channels = shape[feature]
    dy, x = (random.uniform(-1, 1.5, shape).astype(np.float32) for _ in range(2))
    scale, mean, variance = (random.uniform(0.5, 2, channels).astype(np.float32) for _ in range(3))
    results = [np.full(shape, 7, np.float32), np.full(channels, 7, np.float32), np.full(channels, 7, np.float32)]
    descriptors = [descriptor(a) for a in (dy, x, scale, mean, variance, *results)]
    function(*(ctypes.c_void_p(d.ctypes.data) for d in descriptors))

    def spread(values):
        return values.astype(np.float64).reshape([-1 if d == feature else 1 for d in range(len(shape))])

    reduced = tuple(d for d in range(len(shape)) if d != feature)
    dy, xmu = dy.astype(np.float64), x.astype(np.float64) - spread(mean)
    r = 1 / np.sqrt(variance.astype(np.float64) + EPSILON)
    sum_dy, sum_dy_xmu = dy.sum(axis=reduced), (dy * xmu).sum(axis=reduced)
    count = dy.size // channels
    dx = spread(scale * r) * (dy - spread(sum_dy / count) - xmu * spread(r * r * sum_dy_xmu / count))
    for result, expected in zip(results, (dx, sum_dy_xmu * r, sum_dy)):
        terms = count if expected.ndim == 1 else 1
        allowed = 64 * 2.0**-24 * max(np.abs(expected).max(), 4 * terms)
        difference = np.abs(result - expected).max()
        assert difference <= allowed, f"differs by {difference}, allowed are {allowed}"


def main():
    compiler = Compiler(*sys.argv[1:4])
    os.makedirs(compiler.directory, exist_ok=True)
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"^flags\s*: (.*)$", file.read(), re.M)[1].split())
    executed = compiled = failed = 0
    kinds = [kind for kind in read_kinds(os.path.join(sys.argv[1], "bngrad-opt")) if kind.target == "cpu"]
    for kind, shape, feature in [(kind.name, *case) for kind in kinds for case in CASES[kind.loops]]:
        for cpu, (bits, fma, needed) in X86.items():
            try:
                assembly = compiler.assembly(kind, shape, feature, bits, fma, "-mtriple=x86_64-unknown-linux-gnu", f"-mcpu={cpu}")
                compiled += 1
                assert b"vmovntps" in assembly or b"movntps" in assembly, "no streaming stores"
                assert (b"zmm" in assembly) == (bits == 512), "registers of the wrong length"
                assert bool(re.search(rb"\svfn?m(add|sub)\w+ps\s", assembly)) == fma, "products are not fused as the target says"
                assert b"fmaf" not in assembly, "calls fmaf"
                if needed in flags:
                    check(compiler.load(f"{kind}-{shape[0]}-{cpu}", assembly), shape, feature)
                    executed += 1
                else:
                    print(f"not executed: {kind} for {cpu}, this CPU has no {needed}")
            except AssertionError as error:
                failed += 1
                print(f"FAILED {kind} for {cpu}: {error}")
        try:
            assembly = compiler.assembly(kind, shape, feature, 128, True, "-mtriple=aarch64-unknown-linux-gnu", "-mcpu=neoverse-n1").decode()
            compiled += 1
            assert re.search(r"fmul\s+v\d+\.4s", assembly), "no vectors of four"
            assert re.search(r"fml[as]\s+v\d+\.4s", assembly), "products are not fused"
            assert "stnp" in assembly, "no streaming stores"
            called = set(re.findall(r"\bbl\s+(\w+)", assembly))
            called = {name for name in called if not name.startswith("bngrad_")}
            assert called <= {"f", "dlopen", "dlsym", "getenv", "malloc", "free", "abort", "memset"}, f"calls {called}"
        except AssertionError as error:
            failed += 1
            print(f"FAILED {kind} for AArch64: {error}")
    print(f"{executed} kernels executed, {compiled} compiled, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
