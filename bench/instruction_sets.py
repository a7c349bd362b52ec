"""The instruction sets of lib/Runtime/Kernels/InstructionSets.def, and how every measured library is held to one.

`force` sets the environment of this process, which libraries read when they are loaded and which the processes of
bngrad-compile and of contenders inherit. What is compiled here has `clang_flags`. Without BNGRAD_ISA everything uses all
that the CPU has.
"""

import dataclasses
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import isa as declared


@dataclasses.dataclass(frozen=True)
class InstructionSet:
    """A value of BNGRAD_ISA, and the values that mean nothing newer elsewhere."""

    name: str
    # LLVM's name of the CPU, and a feature that it has beside.
    cpu: str
    feature: str
    # In tables.
    title: str
    # The CPU that llvm-mca calculates with.
    model: str
    # ATEN_CPU_CAPABILITY, which also chooses the vectors of torch.compile.
    aten: str
    # ONEDNN_MAX_CPU_ISA and --xla_cpu_max_isa; empty where the library knows no such level.
    onednn: str = ""
    xla: str = ""
    # For LLVM's tools; empty: x86-64.
    triple: str = ""

    @property
    def stem(self):
        """In names of files."""
        return self.name.replace("+", "-")

    @property
    def march(self):
        """The option -march of compilers, without the feature."""
        return self.name.partition("+")[0]

    @property
    def attributes(self):
        return f"+{self.feature}" if self.feature else ""

    @property
    def clang_flags(self):
        return [f"-march={self.march}"] + ([f"-m{self.feature}"] if self.feature else [])

    @property
    def iree_flags(self):
        return [f"--iree-llvmcpu-target-cpu={self.cpu}", f"--iree-llvmcpu-target-cpu-features={self.attributes}"]

    @property
    def environment(self):
        """The variables that hold libraries to this instruction set."""
        found = {"BNGRAD_ISA": self.name, "ATEN_CPU_CAPABILITY": self.aten, "TORCHINDUCTOR_CPP_MARCH": self.march}
        if self.onednn:
            found["ONEDNN_MAX_CPU_ISA"] = found["DNNL_MAX_CPU_ISA"] = self.onednn
        if self.xla:
            flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith("--xla_cpu_max_isa=")]
            found["XLA_FLAGS"] = " ".join([*flags, f"--xla_cpu_max_isa={self.xla}"])
        return found


SETTINGS = {
    "x86-64-v4+avx512bf16": {"title": "v4+bf16", "model": "znver4", "aten": "avx512", "onednn": "AVX512_CORE_BF16",
                             "xla": "AVX512_BF16"},
    "x86-64-v4": {"title": "v4", "model": "skylake-avx512", "aten": "avx512", "onednn": "AVX512_CORE", "xla": "AVX512"},
    "x86-64-v3": {"title": "v3", "model": "znver3", "aten": "avx2", "onednn": "AVX2", "xla": "AVX2"},
    "x86-64-v2": {"title": "v2", "model": "nehalem", "aten": "default", "onednn": "SSE41", "xla": "SSE4_2"},
    "armv8-a": {"title": "NEON", "model": "neoverse-n1", "aten": "default", "triple": "aarch64-linux-gnu"},
}
# Of all architectures, the best of each first.
ALL = tuple(InstructionSet(*each, **SETTINGS[each.name]) for each in declared.read_declared())


def names():
    """The values of BNGRAD_ISA on this architecture, the best first."""
    return declared.list_names()


def find(name):
    """The instruction set of this architecture with that name."""
    if name not in names():
        sys.exit(f"bngrad: error: expected an instruction set of {', '.join(names())}, got '{name}'")
    return next(each for each in ALL if each.name == name)


def force(name):
    """Holds this process, and those that it starts, to an instruction set."""
    os.environ.update(find(name).environment)


def forced():
    """The instruction set to which this process is held, or None."""
    name = os.environ.get("BNGRAD_ISA")
    return find(name) if name else None


def clang_flags():
    """For the CPU that clang compiles for."""
    return forced().clang_flags if forced() else ["-march=native"]


def iree_flags():
    """For the CPU that IREE compiles for."""
    return forced().iree_flags if forced() else ["--iree-llvmcpu-target-cpu=host"]


def hold_inductor(torch):
    """torch.compile adds newer instructions than those of ATEN_CPU_CAPABILITY, which it asks the CPU for."""
    chosen = forced()
    if chosen:
        torch.cpu._is_vnni_supported = torch.cpu._is_amx_tile_supported = lambda: False
        if chosen.feature != "avx512bf16":
            torch.cpu._is_avx512_bf16_supported = lambda: False


def describe(tools):
    """For `machine.describe`: the best instruction set of this CPU, by the bngrad-opt in `tools`, and the one in use."""
    best = next(name for name in names() if declared.is_runnable(name, pathlib.Path(tools)))
    return {"isa": forced().name if forced() else best, "cpu_isa": best}


def to_text(machine):
    """What was measured, from a machine's description."""
    forced_on = "" if machine["isa"] == machine["cpu_isa"] else f", forced on a CPU with {machine['cpu_isa']}"
    return f"instruction set {machine['isa']}{forced_on}"
