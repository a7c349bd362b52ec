#!/usr/bin/env bash
# Installs BNGrad into a scratch folder and builds examples/embed against it, as
# another project would; then builds it against the build tree.

. "$(dirname "$0")/common.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null

# check_package NAME PACKAGE_DIR
check_package() {
  cmake -S "$root/examples/embed" -B "$scratch/$1" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="clang++-$llvm_version" \
    -DCMAKE_C_COMPILER="clang-$llvm_version" \
    -DBNGrad_DIR="$2"
  cmake --build "$scratch/$1"
  for program in embed embed-all; do
    "$scratch/$1/$program" | "$llvm_prefix/bin/FileCheck" "$0"
  done
  # The compiler that wants linalg alone links no later stage.
  if ninja -C "$scratch/$1" -t commands embed | grep -E 'lib(BNGrad(Schedule|Bufferize|Apply|Lower|Pipelines)|MLIR(NVVM|OpenMP))'; then
    fail "expected embed to link ToLinalg alone"
  fi
}
check_package installed "$scratch/prefix/lib/cmake/BNGrad"
check_package built "$build/lib/cmake/BNGrad"
"$scratch/prefix/bin/bngrad-opt" "$root/examples/digits/digits.mlir" \
  --bngrad-cpu-pipeline >/dev/null
"$scratch/prefix/bin/bngrad-compile" "$root/examples/aot/gradient.mlir" \
  -o "$scratch/gradient.so" --header="$scratch/gradient.h"

# CHECK-LABEL: func.func @gradient
# CHECK-COUNT-3: linalg.generic
# CHECK-NOT: bngrad.
