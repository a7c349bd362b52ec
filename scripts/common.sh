# Common code of the scripts in this folder; sourced, never run.
#
# Sets `root`, `build`, `llvm_prefix` and `python`; defines `fail`, `setup` and
# `build`. Every error on a fresh machine is one line. With --help as their first
# argument, the scripts print the comment at their beginning.

set -euo pipefail

case "${1:-}" in
  -h | --help)
    sed -n -e 1d -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
    exit
    ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath -ms "${BNGRAD_BUILD_DIR:-$root/build}")
llvm_version=22
llvm_prefix=/usr/lib/llvm-$llvm_version
python=/usr/bin/python3
# Our files are in UTF-8, whatever the locale.
export PYTHONUTF8=1
# Several builds compile the same sources, such as those of the mutants. The sources may be read-only.
cache=$root/build/ccache
[ -w "$root/build" ] || [ -w "$root" ] || cache=$build/ccache
export CCACHE_DIR=${CCACHE_DIR:-$cache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
# Precompiled headers need it.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# Packages for the build and the tests, with the names of Debian 12.
# apt.llvm.org has the same names for Ubuntu.
packages=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22
  liblld-22-dev
  libomp-22-dev libclang-rt-22-dev libgtest-dev zlib1g-dev libzstd-dev
  libcurl4-openssl-dev libhwloc-dev cmake ninja-build ccache g++ pkg-config python3 python3-numpy python3-venv
)
# Releases of the frameworks that the Python package is tested with. Where a Python has none of that version,
# the newest one before it. JAX's headers are those of the oldest release that bngrad.jax supports.
torch_version=2.15.0 oldest_torch_version=2.10
jax_version=0.10.2 oldest_jax_version=0.6.0
flax_version=0.12.8
# Both MPIs, for tests of several processes. CMake looks for them.
mpi_packages=(libopenmpi-dev openmpi-bin libmpich-dev mpich)

# fail MESSAGE: one line on standard error, exit 1.
fail() {
  printf 'bngrad: error: %s\n' "$1" >&2
  exit 1
}

# list_sources [PATTERN...]: the files of the sources from $root, one a line.
list_sources() {
  "$python" -B "$root/scripts/sources.py" "$root" "$@"
}

# count_commits: their number, which selects the share of a run of tests that are divided over several; 0 in a
# tree without git.
count_commits() {
  git -C "$root" rev-list --count HEAD 2>/dev/null || echo 0
}

# Needs the folder $2, with at least $1 MiB free.
require_space() {
  local free
  mkdir -p "$2" 2>/dev/null || fail "cannot create the folder $2"
  [ -w "$2" ] || fail "expected a folder in which this user may write, got $2"
  free=$(df -Pm "$2" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$1" ] ||
    fail "expected at least $1 MiB free at $2, got $free MiB"
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s\n' "$package"
  done
}

# Installs missing packages.
setup() {
  command -v dpkg-query >/dev/null ||
    fail "expected Debian 12 or Ubuntu (dpkg), got $(uname -sr); install LLVM/MLIR 22.1 by hand and build with CMake"
  local missing as_root=() log update
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "expected root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  require_space 2500 /usr/lib
  printf 'bngrad: installing %s\n' "${missing[*]}"
  log=$(mktemp) update=$(mktemp)
  # Without a network, apt-get update succeeds with warnings, and apt-get install knows no package.
  "${as_root[@]}" timeout 600 apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 update >"$update" 2>&1 ||
    fail "apt-get update failed: $(grep -m1 '^E:' "$update" || tail -n1 "$update")"
  "${as_root[@]}" timeout 1800 env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    fail "apt-get install failed: $(grep -m1 '^W: Failed to fetch' "$update" || grep -m1 '^E:' "$log" || tail -n1 "$log")"
  rm -f "$log" "$update"
}

# configuration: the arguments of CMake except for the folders, one per line. Several sources are compiled
# together (a unity build), unless BNGRAD_UNITY_BUILD is OFF.
configuration() {
  printf '%s\n' cmake -G Ninja \
    -DCMAKE_BUILD_TYPE="${BNGRAD_BUILD_TYPE:-Release}" \
    -DCMAKE_UNITY_BUILD="${BNGRAD_UNITY_BUILD:-ON}" \
    -DCMAKE_C_COMPILER="${CC:-clang-$llvm_version}" \
    -DCMAKE_CXX_COMPILER="${CXX:-clang++-$llvm_version}" \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DMLIR_DIR="$llvm_prefix/lib/cmake/mlir" \
    -DLLVM_DIR="$llvm_prefix/lib/cmake/llvm" \
    -DPython3_EXECUTABLE="$python"
}

# has_new_tools: whether an MPI or ptxas was installed since $build was configured.
has_new_tools() {
  local name
  if [ -x "$build/cuda/nvidia/cu13/bin/ptxas" ] && grep -q '^BNGRAD_PTXAS:.*-NOTFOUND$' "$build/CMakeCache.txt"; then
    return 0
  fi
  for name in openmpi mpich; do
    if command -v "mpicc.$name" >/dev/null &&
      grep -q "^BNGRAD_MPICC_${name^^}:.*-NOTFOUND$" "$build/CMakeCache.txt"; then
      return 0
    fi
  done
  return 1
}

# Configures $build, unless it is; BNGRAD_CMAKE_FLAGS adds options.
configure() {
  require_space 1000 "$build"
  if [ ! -f "$build/build.ninja" ] || has_new_tools; then
    local arguments
    mapfile -t arguments < <(configuration)
    "${arguments[@]}" -S "$root" -B "$build" ${BNGRAD_CMAKE_FLAGS:-} >"$build/configure.log" 2>&1 ||
      fail "configuring failed: $(grep -m1 -A2 'CMake Error' "$build/configure.log" | tr -s ' \n' ' ') (see $build/configure.log)"
  fi
}

# Configures $build and builds the given targets (default: all).
build() {
  local status=0
  configure
  timeout --foreground --kill-after=10 7200 cmake --build "$build" ${@:+--target "$@"} >"$build/build.log" 2>&1 ||
    status=$?
  [ $status -ne 124 ] || fail "building: expected at most two hours, got more (see $build/build.log)"
  [ $status -eq 0 ] || fail "building failed: $(grep -m1 -E '(^| )(fatal )?error: ' "$build/build.log" || grep -m1 FAILED "$build/build.log") (see $build/build.log)"
}

# Builds everything, and what the tests need.
build_tests() {
  build
  build check-bngrad-depends
}

# install_clients PACKAGE...: a Python in the build with torch-mlir and the given frameworks.
# Their requirements are installed as well, but not those of torch-mlir, which is a tool here.
install_clients() {
  local venv=$build/clients-venv
  [ ! -f "$venv/installed-$*" ] || return 0
  mkdir -p "$build"
  { "$python" -m venv "$venv" &&
    "$venv/bin/pip" install "$@" &&
    "$venv/bin/pip" install --no-deps torch-mlir==20261001 &&
    touch "$venv/installed-$*"; } >"$build/clients-venv.log" 2>&1
}

# Installs the C++ parser for generated mutants, 5 MB, into the build; needs the package python3-venv.
install_parser() {
  local venv=$build/mutation-venv
  [ ! -f "$venv/installed" ] || return 0
  mkdir -p "$build"
  { "$python" -m venv "$venv" &&
    "$venv/bin/pip" install --upgrade tree-sitter==0.26.1 tree-sitter-cpp==0.23.4 &&
    touch "$venv/installed"; } >"$build/mutation-venv.log" 2>&1
}

# Installs the parts of the CUDA toolkit that the tests and the binaries of kernels for GPUs need, 250 MB, into the
# build.
install_ptxas() {
  "$python" -m venv "$build/cuda-venv" &&
    "$build/cuda-venv/bin/pip" install --no-deps --upgrade --target "$build/cuda" \
      nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88
}

# Installs the assembler of CUDA 12, whose binaries drivers of CUDA 12 and 13 load, 40 MB, into the build.
install_older_ptxas() {
  "$python" -m venv "$build/cuda-venv" &&
    "$build/cuda-venv/bin/pip" install --no-deps --upgrade --target "$build/cuda12" nvidia-cuda-nvcc-cu12==12.8.93
}

# The disassembler, 20 MB.
install_cuobjdump() {
  local target=$build/cuda-binutils
  [ -x "$target/nvidia/cu13/bin/cuobjdump" ] && [ -x "$target/nvidia/cu13/bin/nvdisasm" ] ||
    { "$python" -m venv "$build/cuda-venv" &&
      "$build/cuda-venv/bin/pip" install --no-deps --upgrade --target "$target" \
        nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37; }
}

# search_for_faults: libFuzzer for a minute, in the build with sanitizers; fails if a target could not be run.
search_for_faults() {
  "$root/fuzz/libfuzzer/run.py" --seconds=60 --build-dir="$build/asan" || [ $? -eq 1 ]
}

# install_torch VENV PACKAGE: PyTorch without the packages of CUDA, 3 GB.
install_torch() {
  "$1/bin/pip" install --no-deps "$2" &&
    "$python" "$root/scripts/torch_without_cuda.py" "$1"/lib/python3*/site-packages/torch/lib &&
    "$1/bin/pip" install torch &&
    "$1/bin/python" -c 'import torch'
}

# install_python PACKAGE...: a Python in the build for the tests of the Python package, with the given
# frameworks.
install_python() {
  local venv=$build/python-venv package
  [ ! -f "$venv/installed-$*" ] || return 0
  mkdir -p "$build"
  { "$python" -m venv "$venv" &&
    "$venv/bin/pip" install nanobind==3.1.0 numpy==2.4.6 ml_dtypes==0.6.0 pytest==9.2.0 mypy==2.4.1 &&
    for package; do
      case $package in
        torch==*) "$venv/bin/pip" install expecttest==0.3.0 && install_torch "$venv" "$package" ;;
        # Its export needs flatbuffers.
        jax==*) "$venv/bin/pip" install "$package" flatbuffers ;;
        *) "$venv/bin/pip" install "$package" ;;
      esac || return 1
    done &&
    touch "$venv/installed-$*"; } >"$build/python-venv.log" 2>&1
}

# find_include PACKAGE FILE: the include folder of a package in that Python, if it has the file.
find_include() {
  local folder
  for folder in "$build"/python-venv/lib/python3.*/site-packages/"$1"/include; do
    [ ! -f "$folder/$2" ] || printf '%s\n' "$folder"
  done
}

# build_python: the Python package for that Python, in build/python/site.
build_python() {
  local frameworks=()
  [ -z "$(find_include torch torch/csrc/stable/library.h)" ] || frameworks+=(-DBNGRAD_PYTHON_TORCH=ON)
  [ -z "$(find_include jaxlib xla/ffi/api/ffi.h)" ] || frameworks+=(-DBNGRAD_PYTHON_JAX=ON)
  cmake -G Ninja -S "$root/python" -B "$build/python" \
    -DCMAKE_C_COMPILER="${CC:-clang-$llvm_version}" -DCMAKE_CXX_COMPILER="${CXX:-clang++-$llvm_version}" \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DBNGRAD_KERNEL_OBJECT_DIR="${BNGRAD_KERNEL_OBJECT_DIR:-$build/lib/Runtime/Kernels}" \
    -DBNGRAD_COMPILER_LIBRARY_DIR="$build/lib" \
    -DPython_EXECUTABLE="$build/python-venv/bin/python" "${frameworks[@]}" &&
    cmake --build "$build/python" &&
    rm -rf "$build/python/site" &&
    cmake --install "$build/python" --prefix "$build/python/site"
}
