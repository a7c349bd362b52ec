#!/usr/bin/env bash
# Sets up a fresh machine, builds, and runs the tests.
#
#   scripts/test.sh        the quick suite: at most 15 minutes on 2 cores
#   scripts/test.sh --all  also the long tests, and parts that take turns from commit
#                          to commit: a sixth of clang-tidy; one of gcc, each third
#                          of the tests with sanitizers, and mutants. Mutants end
#                          after 64 minutes. BNGRAD_SHARE=all runs every part
#
# The last line is `bngrad: N passed, M failed, K skipped`. BNGRAD_REQUIRE=numpy
# turns a skip of that kind into a failure; BNGRAD_CONFORMANCE_DIR names a folder
# of cases with expected values (docs/testing.md).

. "$(dirname "$0")/common.sh"

all=0
case "${1:-}" in
  "") ;;
  --all) all=1 ;;
  *) fail "expected no option or --all, got '$1'" ;;
esac

passed=0 failed=0 skipped=0
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# report_time NAME BEGIN: prints how long a step took, if that is a minute or more.
report_time() {
  [ $((SECONDS - $2)) -lt 60 ] || printf 'bngrad: %s took %d s\n' "$1" $((SECONDS - $2))
}

# step NAME COMMAND...: runs a command that counts as one test.
step() {
  local name=$1 log begin=$SECONDS
  shift
  log=$build/$name.log
  printf 'bngrad: %s\n' "$name"
  if "$@" >"$log" 2>&1; then
    count 1 0 0
  else
    printf 'FAILED: %s (see %s)\n' "$name" "$log"
    tail -n 20 "$log"
    count 0 1 0
  fi
  report_time "$name" $begin
}

# step_with TOOL NAME COMMAND...: as step; without TOOL, a skipped test.
step_with() {
  if command -v "$1" >/dev/null; then
    step "${@:2}"
  else
    printf 'bngrad: %s: skipped, no %s\n' "$2" "$1"
    count 0 0 1
  fi
}

# run_lit BUILD_DIR [OPTION...]: runs the lit tests of a build and adds its
# totals.
run_lit() {
  local results=$1/lit.json begin=$SECONDS
  rm -f "$results"
  "$python" "$llvm_prefix/bin/lit" -v --no-progress-bar -o "$results" \
    "${@:2}" "$1/test" >"$1/lit.log" 2>&1 || true
  [ -f "$results" ] || fail "lit did not run: $(tail -n1 "$1/lit.log")"
  grep -E '^(FAIL|TIMEOUT|UNRESOLVED|XPASS):' "$1/lit.log" || true
  # shellcheck disable=SC2046
  count $("$python" "$root/scripts/count_results.py" "$results")
  report_time tests $begin
}

# True if test/lit.cfg.py would find a CUDA toolkit with ptxas. Sets CUDA_ROOT
# for the other builds.
has_ptxas() {
  local root
  command -v ptxas >/dev/null && return
  for root in "${CUDA_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda "$build/cuda/nvidia/cu13"; do
    [ ! -x "$root/bin/ptxas" ] || { export CUDA_ROOT=$root && return; }
  done
  return 1
}

# Installs the parts of the CUDA toolkit that the tests need, 250 MB, into the
# build.
install_ptxas() {
  "$python" -m venv "$build/cuda-venv" &&
    "$build/cuda-venv/bin/pip" install --no-deps --upgrade --target "$build/cuda" \
      nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88
}

# The disassembler, 20 MB.
install_cuobjdump() {
  local target=$build/cuda-binutils
  [ -x "$target/nvidia/cu13/bin/cuobjdump" ] && [ -x "$target/nvidia/cu13/bin/nvdisasm" ] ||
    { "$python" -m venv "$build/cuda-venv" &&
      "$build/cuda-venv/bin/pip" install --no-deps --upgrade --target "$target" \
        nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37; } >"$build/cuobjdump.log" 2>&1
}

# Every warning of gcc is an error. The result is built but not run.
build_with_gcc() {
  printf 'bngrad: building with gcc\n'
  step gcc env BNGRAD_BUILD_DIR="$build/gcc" CC=gcc CXX=g++ \
    BNGRAD_CMAKE_FLAGS=-DBNGRAD_ENABLE_WERROR=ON "$root/scripts/build.sh"
}

# Asserts and sanitizers in BNGrad's code.
build_with_sanitizers() {
  printf 'bngrad: building with sanitizers\n'
  step asan-ubsan env BNGRAD_BUILD_DIR="$build/asan" \
    BNGRAD_BUILD_TYPE=RelWithDebInfo \
    BNGRAD_CMAKE_FLAGS="-DLLVM_USE_SANITIZER=Address;Undefined -DBNGRAD_ENABLE_ASSERTS=ON -DBNGRAD_BUILD_FUZZERS=ON -DBNGRAD_BUILD_KERNELS=OFF" \
    "$root/scripts/build.sh"
}

# run_with_sanitizers [OPTION...]: the quick suite, with options of lit, then a
# short search with new seeds. The slowest tests are omitted, as they repeat code of
# other tests, and so are the mutants, whose tools are in the first build. A fault
# that the search finds may be older than the commit, and is only reported;
# test/Fuzz/replay.test fails for those that are stored, scripts/fuzz.sh for all.
run_with_sanitizers() {
  [ -x "$build/asan/bin/bngrad-runner" ] || return 0
  printf 'bngrad: running the tests with sanitizers %s\n' "$*"
  run_lit "$build/asan" --filter-out 'Conformance|Properties|Mutants' "$@"
  step fuzz-libfuzzer search
  grep -E '^fuzz: ' "$build/fuzz-libfuzzer.log" || true
}

# search: libFuzzer for a minute; fails if a target could not be run.
search() {
  "$root/fuzz/libfuzzer/run.py" --seconds=60 --build-dir="$build/asan" || [ $? -eq 1 ]
}

# This number selects the share of a run, of tests that are divided over several.
commits=$(count_commits)

# has_time SECONDS: whether they are left of the time for everything.
start=$SECONDS most=$((64 * 60))
has_time() {
  [ $((most - (SECONDS - start))) -gt "$1" ]
}

packages+=(python3-dev python3-venv)
setup
# The tools that check the sources, which the build does not need.
(packages=("clang-format-$llvm_version" "clang-tidy-$llvm_version") && setup) || true
(packages=("${mpi_packages[@]}") && setup) ||
  printf 'bngrad: no Open MPI and MPICH, tests of several processes are skipped\n'
install_parser ||
  printf 'bngrad: no tree-sitter, tests of generated mutants are skipped: see %s\n' "$build/mutation-venv.log"
if ! has_ptxas; then
  printf 'bngrad: installing ptxas\n'
  require_space 600 "$build"
  install_ptxas >"$build/ptxas.log" 2>&1 && has_ptxas ||
    printf 'bngrad: no ptxas, its tests are skipped: %s\n' \
      "$(grep -m1 -i error "$build/ptxas.log" || tail -n1 "$build/ptxas.log")"
fi
install_cuobjdump ||
  printf 'bngrad: no cuobjdump, its test is skipped: see %s\n' "$build/cuobjdump.log"
if [ $all -eq 1 ]; then
  has_ptxas || fail "expected ptxas, see $build/ptxas.log"
  for tool in "clang-format-$llvm_version" "clang-tidy-$llvm_version"; do
    command -v "$tool" >/dev/null || fail "expected $tool"
  done
  (packages=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross) && setup) ||
    fail "expected qemu-user and a C compiler for AArch64"
  # Of the clients, the one that needs little space; scripts/clients.sh has all.
  install_clients jax==0.10.2 ||
    printf 'bngrad: no jax, its modules are skipped: see %s\n' "$build/clients-venv.log"
  export BNGRAD_REQUIRE=aarch64,ptxas,clang-format,clang-tidy,openmpi,mpich${BNGRAD_REQUIRE:+,$BNGRAD_REQUIRE}
fi
printf 'bngrad: building\n'
build
build check-bngrad-depends
report_time building $start
# The Python package; --all has those for PyTorch and JAX.
has_package=0
if [ $all -eq 1 ] && (require_space 5000 "$build") && install_python torch==2.15.0 jax==0.10.2 flax==0.12.8; then
  has_package=1
elif install_python; then
  has_package=1
  [ $all -eq 0 ] || printf 'bngrad: no torch and jax, their tests are skipped: see %s\n' "$build/python-venv.log"
else
  printf 'bngrad: no numpy and pytest, tests of the Python package are skipped: see %s\n' "$build/python-venv.log"
fi
[ $has_package -eq 0 ] || step python build_python
step_with "clang-format-$llvm_version" format "$root/scripts/check_format.sh"
step structure "$python" "$root/scripts/check_structure.py"
# With --all, a share of the files that takes about two minutes, further below.
if [ $all -eq 0 ]; then
  step_with "clang-tidy-$llvm_version" tidy "$root/scripts/check_tidy.sh" --changed
  [ ! -f "$build/tidy.log" ] || tail -n 1 "$build/tidy.log"
fi
printf 'bngrad: running the tests\n'
if [ $all -eq 1 ]; then
  BNGRAD_COMMITS=$commits BNGRAD_LONG_TESTS=1 BNGRAD_REQUIRE=$BNGRAD_REQUIRE,tree-sitter run_lit "$build"
else
  run_lit "$build"
fi

if [ -n "${BNGRAD_CONFORMANCE_DIR:-}" ]; then
  step conformance cmake --build "$build" --target check-bngrad-conformance
  grep -E '^(parametric|conformance):' "$build/conformance.log" || true
fi

if [ $all -eq 1 ]; then
  step demo "$root/scripts/demo.sh"
  step readme "$python" "$root/scripts/check_readme.py" "$root/README.md" "$build/demo.log"
  tidy_share=6
  [ "${BNGRAD_SHARE:-}" != all ] || tidy_share=1
  step tidy "$root/scripts/check_tidy.sh" --share=$tidy_share
  tail -n 1 "$build/tidy.log"
  step install "$root/scripts/check_install.sh"
  step wheels "$root/scripts/wheels.sh"
  grep -E '^bngrad: .*(bytes|passed)' "$build/wheels.log" || true

  # These take turns from commit to commit. Nothing in the last leaves time for the
  # mutants below.
  other=$((commits % 5))
  [ "${BNGRAD_SHARE:-}" != all ] || other=all
  case $other in
    0) build_with_gcc ;;
    [1-3]) build_with_sanitizers && run_with_sanitizers --num-shards=3 --run-shard=$other ;;
    4) ;;
    all) build_with_gcc && build_with_sanitizers && run_with_sanitizers ;;
  esac
  step fuzz-allocations "$root/fuzz/allocations/hunt.py" "$build" --most=12 \
    --seed=$((commits + 1))
  tail -n 1 "$build/fuzz-allocations.log"

  # Generated mutants of a few files, others with every commit, of the share of
  # docs/mutation.md. Survivors are reported, and are no failure: that share was
  # run on earlier sources.
  if has_time 480; then
    step generated-mutants "$root/scripts/mutants.sh" --generate --percent=7 --most-files=5 --seconds=420 --least=0 \
      --seed="$commits"
    grep -E '^(SURVIVED|generated mutants:)' "$build/generated-mutants.log" || true
  else
    printf 'bngrad: generated mutants: not begun, no time is left\n'
  fi

  # As many as there is time for; their build and the tests without a mutant take
  # ten minutes.
  if has_time 600; then
    step mutants "$root/scripts/mutants.sh" --seconds=$((most - (SECONDS - start)))
    grep -E '^(killed [0-9]* of|not begun)' "$build/mutants.log" || true
  else
    printf 'bngrad: mutants: not begun, no time is left\n'
  fi
fi

printf 'bngrad: finished in %d s\n' $((SECONDS - start))
printf 'bngrad: %d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
