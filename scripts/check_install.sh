#!/usr/bin/env bash
# Installs BNGrad into a scratch folder and moves it to another one: no file may
# have a path of the build or of the sources, the public headers must compile alone,
# and the tools, the plugin and the examples must work, with clang and gcc. Before
# that, examples/embed is built against the build tree.

. "$(dirname "$0")/common.sh"

scratch=$(mktemp -d)
prefix=$scratch/moved/prefix
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# expect PREFIX COMMAND...: runs a command, and FileCheck on its output with the
# lines of that prefix below.
expect() {
  "${@:2}" | "$llvm_prefix/bin/FileCheck" "$0" --check-prefix="$1"
}

# configure NAME EXAMPLE COMPILER OPTION...: builds an example with clang or gcc.
configure() {
  local cc=$3 cxx=g++
  [ "$cc" = gcc ] || cxx=clang++-$llvm_version
  cmake -S "$root/$2" -B "$scratch/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "${@:4}"
  cmake --build "$scratch/$1"
}

# check_embed NAME COMPILER PACKAGE_DIR
check_embed() {
  local program
  configure "$1" examples/embed "$2" -DBNGrad_DIR="$3"
  for program in embed embed-all; do
    expect EMBED "$scratch/$1/$program"
  done
  # The compiler that wants linalg alone links no later stage.
  if ninja -C "$scratch/$1" -t commands embed | grep -E 'lib(BNGrad(Schedule|Bufferize|Layout|Apply|CAbi|Lower|Pipelines)|MLIR(NVVM|OpenMP))'; then
    fail "expected embed to link ToLinalg alone"
  fi
}

# check_headers: those of the prefix, and one that bngrad-compile has written.
check_headers() {
  local compiler
  "$root/scripts/check_headers.sh" "$prefix/include"
  for compiler in "clang-$llvm_version -x c -std=c99" "gcc -x c -std=c99" \
    "clang++-$llvm_version -x c++ -std=c++17" "g++ -x c++ -std=c++17"; do
    # shellcheck disable=SC2086
    printf '#include "gradient.h"\n#include "gradient.h"\n' |
      $compiler -fsyntax-only -Wall -Wextra -pedantic -Werror -I"$scratch" -
  done
}

# check_tools: the installed tools and the plugin.
check_tools() {
  local bin=$prefix/bin tool
  for tool in bngrad-compile bngrad-lsp-server bngrad-opt bngrad-runner ptx-emulator; do
    expect VERSION "$bin/$tool" --version
  done
  local digits=$root/examples/digits/digits.mlir
  "$bin/bngrad-opt" "$digits" --bngrad-cpu-pipeline -o "$scratch/own.mlir"
  "$llvm_prefix/bin/mlir-opt" --load-dialect-plugin="$prefix/lib/libBNGradPlugin.so" \
    --load-pass-plugin="$prefix/lib/libBNGradPlugin.so" "$digits" \
    --pass-pipeline='builtin.module(bngrad-cpu-pipeline)' -o "$scratch/stock.mlir"
  diff "$scratch/own.mlir" "$scratch/stock.mlir"
  local arguments=(--arg=random:{1..5} --check)
  expect CHECKED "$bin/bngrad-runner" "$digits" "${arguments[@]}"
  expect CHECKED "$bin/bngrad-runner" "$digits" "${arguments[@]}" --target=cuda-emulator
}

# check_objects: shared objects of the installed bngrad-compile, from C.
check_objects() {
  local compiler
  "$prefix/bin/bngrad-compile" "$root/examples/aot/gradient.mlir" -o "$scratch/gradient.so" --header="$scratch/gradient.h"
  for compiler in "clang-$llvm_version" gcc; do
    "$compiler" -I"$scratch" "$root/examples/aot/main.c" "$scratch/gradient.so" -Wl,-rpath,'$ORIGIN' -lm -o "$scratch/main"
    expect AOT "$scratch/main"
  done
  "$prefix/bin/bngrad-compile" "$root/examples/aot/gradient.mlir" -o "$scratch/cuda.so" --target=cuda
  ldd "$scratch/cuda.so" | grep "libBNGradCudaRuntime\.so\.[0-9.]* => $prefix/lib/" ||
    fail "expected the installed CUDA runtime"
}

# check_components COMPILER: a program in C, which needs no MLIR.
check_components() {
  local component options=(-DBNGrad_DIR="$prefix/lib/cmake/BNGrad" -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
    -DCMAKE_C_FLAGS="-std=c89 -pedantic -Werror")
  for component in CudaRuntime CudaEmulator; do
    configure "$component-$1" test/Install/c "$1" "${options[@]}" -DBNGRAD_COMPONENT=$component
    BNGRAD_CUDA_DRIVER=$scratch/none.so expect "$component" "$scratch/$component-$1/runtime"
  done
  for component in ToLinalg None; do
    { ! configure "$component-$1" test/Install/c "$1" "${options[@]}" -DBNGRAD_COMPONENT=$component 2>&1; } |
      expect "$component" cat
  done
}

# check_runtime COMPILER: the C library, through the package and pkg-config.
check_runtime() {
  local program
  configure "runtime-$1" examples/runtime "$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
  for program in gradient infiniop tfrt; do
    expect RUNTIME-$program "$scratch/runtime-$1/$program"
  done
  # shellcheck disable=SC2046
  "$1" -std=c89 -pedantic -Werror "$root/examples/runtime/gradient.c" -o "$scratch/gradient" \
    $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs bngrad) -Wl,-rpath,"$prefix/lib"
  expect RUNTIME-gradient "$scratch/gradient"
}

# check_packages: the C library's packages are enough for a program, and each file
# is in one package.
check_packages() {
  local package list=$scratch/packages.txt
  (cd "$build" && cpack -B "$scratch/packages" >/dev/null)
  for package in "$scratch"/packages/*.deb; do
    dpkg-deb --contents "$package" | awk '$1 ~ /^[-l]/ { print $6 }'
  done | sort >"$list"
  [ -z "$(uniq -d "$list")" ] || fail "expected no file in two packages, got $(uniq -d "$list" | head -n1)"
  (cd "$prefix" && find . -type f -o -type l) | sed 's,^\./,./usr/,' | sort | diff "$list" - ||
    fail "expected the packages to have the installed files"
  for package in "$scratch"/packages/libbngrad-{kernels,runtime}*.deb; do
    dpkg-deb --extract "$package" "$scratch/root"
  done
  # The prefix is still the program's own choice.
  mv -T "$prefix" "$prefix.hidden"
  LD_LIBRARY_PATH=$scratch/root/usr/lib expect RUNTIME-gradient "$scratch/gradient"
  local debs=("$scratch"/packages/*.deb) archives=("$scratch"/packages/*.tar.gz)
  [ ${#archives[@]} -eq ${#debs[@]} ] || fail "expected ${#debs[@]} archives, as packages, got ${#archives[@]}"
}

check_embed built "clang-$llvm_version" "$build/lib/cmake/BNGrad"

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
mkdir "$scratch/moved"
mv "$scratch/prefix" "$prefix"
if grep -rlF -e "$build" -e "$root" -e "$scratch/prefix" "$prefix"; then
  fail "expected no path of the sources, the build or the first prefix in the files above"
fi
[ -f "$prefix/share/doc/BNGrad/LICENSE" ] || fail "expected share/doc/BNGrad/LICENSE"

check_objects
check_headers
check_tools
for compiler in "clang-$llvm_version" gcc; do
  check_embed "embed-$compiler" "$compiler" "$prefix/lib/cmake/BNGrad"
  configure "aot-$compiler" examples/aot "$compiler" -DCMAKE_PREFIX_PATH="$prefix"
  expect AOT "$scratch/aot-$compiler/aot"
  configure "compiler-$compiler" test/Install/compiler "$compiler" -DBNGrad_DIR="$prefix/lib/cmake/BNGrad"
  expect PROGRAM "$scratch/compiler-$compiler/compiler"
  check_components "$compiler"
  check_runtime "$compiler"
done
check_packages
printf 'install: passed\n'

# EMBED-LABEL: func.func @gradient
# EMBED-COUNT-3: linalg.generic
# EMBED-NOT: bngrad.

# VERSION: BNGrad version {{[0-9.]+$}}

# CHECKED-COUNT-3: result {{.*}} ok
# CHECKED-NOT: failed

# AOT: grad_offset 250{{[89]}}.0, expected 2508
# AOT-NEXT: grad_scale 2660.1, expected 2660.1

# ToLinalg: find_package for module MLIR
# None: expected a library of BNGrad as component, got None
# PROGRAM: grad_offset 16.0 20.0

# CudaRuntime: cannot load {{.*}}none.so
# CudaEmulator: sm_{{[0-9]+$}}

# RUNTIME-gradient: channel 0: grad_scale 21.000, grad_offset 15.0
# RUNTIME-gradient-NEXT: channel 1: grad_scale 45.000, grad_offset 17.0
# RUNTIME-gradient-NEXT: channel 2: grad_scale -10.000, grad_offset 14.0
# RUNTIME-infiniop: infiniop: 0 failures
# RUNTIME-tfrt: tfrt: 0 failures
