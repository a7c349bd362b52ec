# Configuration of the test suite; see docs/testing.md.

import ctypes
import os
import platform
import resource
import shutil
import subprocess
import sys

from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "BNGrad"
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.bngrad_obj_root, "test")

sys.path.insert(0, os.path.dirname(__file__))
from plain_paths import PlainPaths, link_plain

# RUN lines have paths without quotes. lit resolves links, except for those in the format.
config.bngrad_src_root, config.bngrad_obj_root = link_plain(config.bngrad_src_root), link_plain(config.bngrad_obj_root)
config.test_format = PlainPaths(os.path.join(config.bngrad_src_root, "test"), os.path.join(config.bngrad_obj_root, "test"))

# A skip of a required kind is a failure: BNGRAD_REQUIRE=numpy,conformance,...
required = [k for k in os.environ.get("BNGRAD_REQUIRE", "").split(",") if k]
known = set()


def add_feature(name, present):
    """Declares a lit feature; its absence fails if BNGRAD_REQUIRE names it."""
    known.add(name)
    if present:
        config.available_features.add(name)
    elif name in required:
        lit_config.fatal(f"BNGRAD_REQUIRE={name}: not available here")


def has_numpy():
    command = [config.python, "-c", "import numpy"]
    return subprocess.run(command, capture_output=True).returncode == 0


def find_cuda_toolkit():
    """The root of a CUDA toolkit with ptxas, from variables, the PATH, the usual folder, or scripts/test.sh."""
    ptxas = shutil.which("ptxas")
    roots = [os.environ.get(name) for name in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")]
    roots += [ptxas and os.path.dirname(os.path.dirname(os.path.realpath(ptxas))), "/usr/local/cuda",
              os.path.join(config.bngrad_obj_root, "cuda", "nvidia", "cu13")]
    for root in roots:
        if root and os.access(os.path.join(root, "bin", "ptxas"), os.X_OK):
            return root
    return None


def find_cuobjdump():
    """cuobjdump, which needs nvdisasm beside it: from the toolkit, or from scripts/test.sh."""
    for root in (cuda_toolkit, os.path.join(config.bngrad_obj_root, "cuda-binutils", "nvidia", "cu13")):
        tools = [os.path.join(root or "", "bin", tool) for tool in ("cuobjdump", "nvdisasm")]
        if root and all(os.access(tool, os.X_OK) for tool in tools):
            return tools[0]
    return None


def has_gpu():
    """Whether there is an NVIDIA GPU with its driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


# The long tests run only by `scripts/test.sh --all`.
add_feature("long", os.environ.get("BNGRAD_LONG_TESTS") == "1")
# The first of the 84 random configurations that a run has, of 252.
config.substitutions.append(("%first_configuration", str(1001 + 84 * (int(os.environ.get("BNGRAD_COMMITS", "0")) % 3))))
# Those that take too long even for that: lit --param night=1.
add_feature("night", lit_config.params.get("night") == "1")
add_feature("numpy", has_numpy())
# Tests of scripts make repositories.
add_feature("git", shutil.which("git") is not None)
# A feature for each instruction set that this CPU has, such as x86-64-v3 (docs/debugging.md).
listed = subprocess.run([config.python, os.path.join(config.bngrad_src_root, "scripts", "isa.py"),
                         os.path.join(config.bngrad_obj_root, "bin")], capture_output=True, text=True)
if listed.returncode != 0:
    lit_config.warning(f"scripts/isa.py: {listed.stderr}")
for line in listed.stdout.splitlines():
    name, answer = line.split()
    if answer == "yes":
        config.available_features.add(name)
# The compiler of the kernel written by hand in the benchmark.
add_feature("clang", shutil.which("clang++-22") is not None)
# Cases with expected values, which are not in the repository; a relative path
# starts at the root of the sources.
conformance_dir = os.environ.get("BNGRAD_CONFORMANCE_DIR")
add_feature("conformance", bool(conformance_dir))
if conformance_dir:
    config.environment["BNGRAD_CONFORMANCE_DIR"] = os.path.join(
        config.bngrad_src_root, conformance_dir)
# Kernels are compiled without the toolkit; ptxas checks them, and libdevice has functions such as exp.
cuda_toolkit = find_cuda_toolkit()
add_feature("cuda", has_gpu())
# The ready kernels for GPUs, and their binaries.
add_feature("cuda-kernels", os.path.exists(os.path.join(config.bngrad_obj_root, "lib", "libBNGradCudaKernels.so")))
add_feature("cuda-binaries", os.path.exists(os.path.join(
    config.bngrad_obj_root, "lib", "Runtime", "CudaKernels", "rows_f32_bin.o")))
# The C++ parser for mutants, installed by scripts/mutants.sh.
mutation_python = os.path.join(config.bngrad_obj_root, "mutation-venv", "bin", "python")
add_feature("tree-sitter", os.path.exists(os.path.join(config.bngrad_obj_root, "mutation-venv", "installed")))
config.substitutions.append(("%mutation_python", mutation_python))
# torch-mlir, and JAX, TensorFlow or torch, installed by scripts/clients.sh; JAX also by scripts/test.sh --all.
clients_python = os.environ.get("BNGRAD_CLIENTS_PYTHON",
                                os.path.join(config.bngrad_obj_root, "clients-venv", "bin", "python"))
add_feature("clients", os.path.exists(os.path.join(os.path.dirname(clients_python), "torch-mlir-opt")))
config.substitutions.append(("%clients_python", clients_python))
# The Python package, and the frameworks of its Python; built by scripts/test.sh, the frameworks with --all.
package_python = os.path.join(config.bngrad_obj_root, "python-venv", "bin", "python")
package_site = os.path.join(config.bngrad_obj_root, "python", "site")


def has_module(name):
    """Whether the Python of the package has a module, without importing it."""
    program = f"import importlib.util as u; exit(u.find_spec('{name}') is None)"
    return os.path.exists(package_python) and subprocess.run([package_python, "-c", program]).returncode == 0


add_feature("python-package", os.path.exists(os.path.join(package_site, "bngrad", "__init__.py")) and has_module("pytest"))
# bngrad_compiler, whose libraries are links to those of the build.
add_feature("python-compiler", os.path.exists(os.path.join(
    package_site, "bngrad_compiler", "_lib", f"libBNGradCompiler.so.{config.bngrad_soversion}")))
for framework in ("torch", "torchvision", "timm", "jax", "flax"):
    add_feature(framework, has_module(framework))
# The tools of scripts/check_format.sh and scripts/check_tidy.sh, installed by scripts/test.sh.
add_feature("clang-format", shutil.which("clang-format-22") is not None)
add_feature("clang-tidy", shutil.which("clang-tidy-22") is not None)
# Back ends of libBNGradDistributed.so, with the launchers of their MPIs.
for mpi in ("openmpi", "mpich"):
    add_feature(mpi, os.path.exists(os.path.join(config.bngrad_obj_root, "lib", f"libBNGradMPI-{mpi}.so")) and
                shutil.which(f"mpirun.{mpi}") is not None)
# Programs for AArch64 in QEMU, compared with those for x86-64.
add_feature("aarch64", platform.machine() == "x86_64" and all(
    shutil.which(tool) for tool in ("qemu-aarch64", "aarch64-linux-gnu-gcc", "gcc")))
add_feature("ptxas", cuda_toolkit is not None)
add_feature("libdevice", cuda_toolkit is not None and
            os.path.exists(os.path.join(cuda_toolkit, "nvvm", "libdevice", "libdevice.10.bc")))
cuobjdump = find_cuobjdump()
add_feature("cuobjdump", cuobjdump is not None)
if cuobjdump:
    config.substitutions.append(("%cuobjdump", cuobjdump))
    config.substitutions.append(("%nvdisasm", os.path.join(os.path.dirname(cuobjdump), "nvdisasm")))
# The CUDA compiler, with the headers of CUB 3.
add_feature("nvcc", cuda_toolkit is not None and os.access(os.path.join(cuda_toolkit, "bin", "nvcc"), os.X_OK) and
            os.path.exists(os.path.join(cuda_toolkit, "include", "cccl", "cub", "cub.cuh")))
if cuda_toolkit:
    config.substitutions.append(("%nvcc", os.path.join(cuda_toolkit, "bin", "nvcc")))
    config.environment["CUDA_ROOT"] = cuda_toolkit
    config.substitutions.append(("%ptxas", os.path.join(cuda_toolkit, "bin", "ptxas")))
unknown = set(required) - known
if unknown:
    lit_config.fatal(f"BNGRAD_REQUIRE: expected some of {sorted(known)}, "
                     f"got {sorted(unknown)}")

# The tests hold for each instruction set, for any number of threads and in any locale; our files are in UTF-8.
config.environment["PYTHONUTF8"] = "1"
forced = ["BNGRAD_ISA", "BNGRAD_NUM_THREADS", "OMP_NUM_THREADS", "LC_ALL"]

# The C library and its kernels, which take long to compile with sanitizers.
if config.kernels:
    config.available_features.add("kernels")

# LLVM is inside libBNGradCompiler.so.
if config.static_llvm:
    config.available_features.add("static-llvm")

# LLVM's allocators poison memory in headers, which are instrumented here, and
# unpoison it in libLLVM, which is not.
if config.sanitizer:
    config.available_features.add("sanitizer")
if "Address" in config.sanitizer:
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0"

# Tests let tools crash, such as MLIR's where it has a fault. A trace with names and a core file would take seconds each.
config.environment["LLVM_DISABLE_SYMBOLIZATION"] = "1"
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

# Our kernels store each result once.
config.environment["PTX_EMULATOR_EQUAL_STORES"] = "error"

bin_dir = os.path.join(config.bngrad_obj_root, "bin")
tool_dirs = [bin_dir, config.llvm_tools_dir]
llvm_config.with_environment("PATH", tool_dirs, append_path=True)
llvm_config.with_system_environment(["HOME", "TMP", "TEMP", "BNGRAD_LONG_TESTS", *forced])
llvm_config.add_tool_substitutions(
    [
        "bngrad-compile",
        "bngrad-lsp-server",
        "bngrad-opt",
        "bngrad-runner",
        "ptx-emulator",
        ToolSubst("FileCheck", "FileCheck -enable-var-scope --allow-unused-prefixes=false",
                  unresolved="fatal"),
        "not",
        "count",
        "split-file",
        "mlir-opt",
        "mlir-translate",
    ],
    tool_dirs,
)
config.substitutions.append(("%python", config.python))
# PyTorch in the process of the C library.
config.substitutions.append(("%torch_python", package_python))
config.package_python, config.package_site = package_python, package_site
config.substitutions.append(("%bngrad_src_root", config.bngrad_src_root))
config.substitutions.append(("%bngrad_obj_root", config.bngrad_obj_root))
config.substitutions.append(("%bngrad_version", config.bngrad_version))
config.substitutions.append(("%bngrad_soversion", config.bngrad_soversion))
config.substitutions.append(("%bngrad_tools", config.bngrad_tools))
config.substitutions.append(("%bngrad_cxx", config.cxx))
config.substitutions.append(("%llvm_prefix", os.path.dirname(config.llvm_tools_dir)))
