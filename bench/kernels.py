"""BNGrad's kernels: the IR of a case, and its compilation to a function pointer."""

import ctypes
import hashlib
import os
import pathlib
import re
import subprocess

import passes

# Variants of a kernel: `static` and `dynamic` are functions on tensors;
# `strided` is one on memrefs of any strides; the others are `static` with a
# fused neighbour.
FUSED = ("relu", "residual", "cast", "consumer")
# The function of each kernel.
ENTRY = "kernel"
EPSILON = 1.0e-5
EPSILON_TEXT = "1.0e-05"


class CompileError(Exception):
    """A compilation error, in one line."""


def _shape(sizes, element_type, dynamic, kind="tensor", layout=""):
    dims = "x".join("?" if dynamic else str(size) for size in sizes)
    return "%s<%sx%s%s>" % (kind, dims, element_type, layout)


def _gradient(data, dx, parameter, feature_dim, dy="%dy", x="%x", suffix=""):
    dims = "" if feature_dim == 1 else "feature_dims = array<i64: %d>, " % feature_dim
    return (
        "  %r:3 = bngrad.batch_norm_backward"
        f" grad_output({dy} : {data}) input({x} : {data})"
        f" scale(%scale{suffix} : {parameter}) mean(%mean{suffix} : {parameter})"
        f" variance(%variance{suffix} : {parameter})"
        f" {{{dims}epsilon = {EPSILON_TEXT} : f64}} : {dx}, {parameter}, {parameter}\n"
    )


def _on_tensors(case, variant):
    dynamic = variant == "dynamic"
    data = _shape(case.memory_sizes, case.type, dynamic)
    parameter = _shape((case.channels,), "f32", dynamic)
    dy_type = _shape(case.memory_sizes, "bf16", False) if variant == "cast" else data
    extra = f", %other: {data}" if variant in ("relu", "residual", "consumer") else ""
    before, after, dy, result = "", "", "%dy", "%r#0"
    if variant == "relu":
        dy = "%masked"
        before = (
            f"  %zero = arith.constant dense<0.0> : {data}\n"
            f"  %positive = arith.cmpf ogt, %other, %zero : {data}\n"
            f"  %masked = arith.select %positive, %dy, %zero :"
            f" {data.replace(case.type, 'i1')}, {data}\n"
        )
    elif variant == "residual":
        dy = "%sum"
        before = f"  %sum = arith.addf %dy, %other : {data}\n"
    elif variant == "cast":
        dy = "%wide"
        before = f"  %wide = arith.extf %dy : {dy_type} to {data}\n"
    elif variant == "consumer":
        result = "%sum"
        after = f"  %sum = arith.addf %r#0, %other : {data}\n"
    return (
        f"func.func @{ENTRY}(%dy: {dy_type}, %x: {data}, %scale: {parameter},"
        f" %mean: {parameter}, %variance: {parameter}{extra})\n"
        f"    -> ({data}, {parameter}, {parameter})"
        " attributes {llvm.emit_c_interface} {\n"
        + before
        + _gradient(data, data, parameter, case.feature_dim, dy)
        + after
        + f"  return {result}, %r#1, %r#2 : {data}, {parameter}, {parameter}\n}}\n"
    )


def _on_memrefs(case):
    """NCHW sizes; the strides are dynamic."""
    strides = "[" + ", ".join("?" for _ in case.sizes) + "]"
    data = _shape(
        case.sizes, case.type, True, "memref", f", strided<{strides}, offset: ?>"
    )
    parameter = "memref<?xf32>"
    tensor = _shape(case.sizes, case.type, True)
    arguments = [("dy", data), ("x", data)]
    arguments += [(name, parameter) for name in ("scale", "mean", "variance")]
    results = [("dx", data), ("dscale", parameter), ("doffset", parameter)]
    text = f"func.func @{ENTRY}(%s) attributes {{llvm.emit_c_interface}} {{\n" % ", ".join(
        f"%{name}: {kind}" for name, kind in arguments + results
    )
    as_tensor = {data: tensor, parameter: "tensor<?xf32>"}
    for name, kind in arguments:
        text += (
            f"  %{name}_t = bufferization.to_tensor %{name} restrict"
            f" : {kind} to {as_tensor[kind]}\n"
        )
    text += _gradient(tensor, tensor, "tensor<?xf32>", 1, "%dy_t", "%x_t", "_t")
    for i, (name, kind) in enumerate(results):
        text += (
            f"  bufferization.materialize_in_destination %r#{i} in restrict"
            f" writable %{name} : ({as_tensor[kind]}, {kind}) -> ()\n"
        )
    return text + "  return\n}\n"


def _forward(case):
    data = _shape(case.memory_sizes, case.type, False)
    parameter = _shape((case.channels,), "f32", False)
    results = f"{data}, {parameter}, {parameter}, {parameter}"
    return (
        f"func.func @{ENTRY}(%x: {data}, %scale: {parameter}, %offset: {parameter})\n"
        f"    -> ({data}, {parameter}, {parameter}) attributes {{llvm.emit_c_interface}} {{\n"
        "  %output, %mean, %variance, %inv_std = bngrad.batch_norm_training"
        f" input(%x : {data}) scale(%scale : {parameter}) offset(%offset : {parameter})"
        f" {{feature_dims = array<i64: {case.feature_dim}>, epsilon = {EPSILON_TEXT} : f64}} : {results}\n"
        f"  return %output, %mean, %inv_std : {data}, {parameter}, {parameter}\n}}\n"
    )


def write(case, variant):
    """The IR of `variant`; the forward pass has one, `static`."""
    if case.norm_pass is passes.FORWARD:
        assert variant == "static", variant
        return _forward(case)
    return _on_memrefs(case) if variant == "strided" else _on_tensors(case, variant)


class Compiler:
    """Compiles IR ahead of time; caches the results in `folder`."""

    def __init__(self, tools, folder, threads):
        self.opt = pathlib.Path(tools) / "bngrad-opt"
        self.runner = pathlib.Path(tools) / "bngrad-runner"
        self.compile_tool = pathlib.Path(tools) / "bngrad-compile"
        # Not from the affinity of this process: the OpenMP runtime has bound
        # it.
        self.threads = threads
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key = None
        if self.compile_tool.exists():
            self.key = hashlib.sha256(self.compile_tool.read_bytes()).hexdigest()

    def _run(self, name, *command):
        try:
            done = subprocess.run(
                [str(word) for word in command],
                capture_output=True,
                text=True,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"{name}: no end after 120 s")
        except OSError as error:
            raise CompileError(f"{name}: {error.strerror}")
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            error = next((line for line in lines if "error" in line), lines[-1])
            error = re.sub(r"^\S*/(\S+)", r"\1", error)
            raise CompileError(f"{name}: {error[:200]} (exit {done.returncode})")
        return done

    def compile(self, case, variant, schedule=""):
        """`variant` as a ctypes function, with the schedule given or chosen."""
        if not self.key:
            raise CompileError("no bngrad-compile in " + self.opt.parent.name)
        text = write(case, variant)
        isa = os.environ.get("BNGRAD_ISA", "")
        digest = hashlib.sha256(f"{self.key} {isa} {self.threads} {schedule}\n{text}".encode()).hexdigest()[:24]
        base = self.folder / digest
        shared = base.with_suffix(".so")
        if not shared.exists():
            path = base.with_suffix(".mlir")
            path.write_text(text)
            temporary = base.with_suffix(".tmp.so")
            self._run(
                "bngrad-compile",
                self.compile_tool,
                path,
                "-o",
                temporary,
                f"--threads={self.threads}",
                *([f"--schedule={schedule}"] if schedule else []),
            )
            temporary.rename(shared)
        library = ctypes.CDLL(str(shared))
        return getattr(library, f"_mlir_ciface_{ENTRY}")

    def schedule(self, case, variant):
        """The schedule that `--bngrad-group` chose, or an empty string."""
        path = self.folder / "schedule.mlir"
        path.write_text(write(case, variant))
        try:
            done = self._run(
                "bngrad-opt",
                self.opt,
                path,
                f"--bngrad-cpu-pipeline=threads={self.threads} stop-after=group",
            )
        except CompileError:
            return ""
        found = re.findall(r"#bngrad\.schedule<([^>]*)>", done.stdout)
        return " ".join(dict.fromkeys(found))

    def latency(self, case):
        """Milliseconds of the in-process compilation and of MLIR's passes in it."""
        path = self.folder / "latency.mlir"
        path.write_text(write(case, "static"))
        totals, passes = [], []
        for _ in range(3):
            arguments = [f"--arg=random:{i}" for i in range(1, 6)]
            done = self._run(
                "bngrad-runner", self.runner, path, *arguments, "--benchmark=1"
            )
            totals.append(float(re.search(r"compile_ms=(\S+)", done.stdout)[1]))
            done = self._run(
                "bngrad-opt",
                self.opt,
                path,
                f"--bngrad-cpu-pipeline=threads={self.threads}",
                "--mlir-timing",
                "--mlir-timing-display=list",
                "-o",
                "/dev/null",
            )
            seconds = dict.fromkeys(("Total", "Parser", "Output"), 0.0)
            for line in done.stderr.splitlines():
                found = re.match(r"\s*([\d.]+) \([^)]*\)\s+(\S+)$", line)
                if found and found[2] in seconds:
                    seconds[found[2]] = float(found[1])
            passes.append(
                1e3 * (seconds["Total"] - seconds["Parser"] - seconds["Output"])
            )
        return {"compile_ms": min(totals), "passes_ms": min(passes)}
