#!/usr/bin/env bash
# Sets up a fresh machine, builds, and runs the tests.
#
#   scripts/test.sh        the quick suite: at most 15 minutes on 2 cores
#   scripts/test.sh --all  also the checks of the installation and of the wheels, and parts that take turns from
#                          commit to commit: the instruction set of the tests, a third of the long tests, a sixth of
#                          clang-tidy, and one of gcc, each source compiled on its own, each third of the tests with
#                          sanitizers, and mutants
#
# --all begins no part for which less time is left than it needs, of 50 minutes or BNGRAD_MINUTES, and says so.
# BNGRAD_SHARE=all runs all parts, without a limit of the whole. Each step has a limit of its own, so that none hangs.
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
share=${BNGRAD_SHARE:-}
minutes=${BNGRAD_MINUTES:-50}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || fail "expected BNGRAD_MINUTES to be a number of minutes, got '$minutes'"

# This number selects what has its turn.
commits=$(count_commits)

passed=0 failed=0 skipped=0
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# seconds_left: of the time for everything; the quick suite and BNGRAD_SHARE=all have no such time.
seconds_left() {
  if [ $all -eq 0 ] || [ "$share" = all ]; then
    echo 86400
  else
    echo $((60 * minutes - SECONDS))
  fi
}

# has_time NAME SECONDS: whether a part that needs so many may begin; says so if not.
has_time() {
  [ "$(seconds_left)" -lt "$2" ] || return 0
  printf 'bngrad: %s: not begun, %d s of %d min are left and it needs %d\n' "$1" "$(seconds_left)" "$minutes" "$2"
  return 1
}

# report_time NAME BEGIN: prints how long a step took, if that is a minute or more.
report_time() {
  [ $((SECONDS - $2)) -lt 60 ] || printf 'bngrad: %s took %d s\n' "$1" $((SECONDS - $2))
}

# limited SECONDS COMMAND...: runs a command, or a function of common.sh, and ends it after that time with status 124.
# In the background, so that an interrupt ends it as well.
running=
limited() {
  timeout --kill-after=10 "$1" bash -c '. "$0" && "$@"' "$root/scripts/common.sh" "${@:2}" &
  running=$!
  local status=0
  wait $running || status=$?
  running=
  return $status
}
trap '[ -z "$running" ] || kill "$running"; exit 130' INT TERM

# run_step SECONDS NAME COMMAND...: runs a command that counts as one test; its status is 124 if its time is over.
run_step() {
  local limit=$1 name=$2 status=0 begin=$SECONDS log=$build/$2.log
  printf 'bngrad: %s\n' "$name"
  limited "$limit" "${@:3}" >"$log" 2>&1 || status=$?
  report_time "$name" $begin
  if [ $status -eq 0 ]; then
    count 1 0 0
  elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
    printf 'bngrad: %s was ended after %d s\n' "$name" "$limit"
    return 124
  else
    printf 'FAILED: %s (see %s)\n' "$name" "$log"
    tail -n 20 "$log"
    count 0 1 0
  fi
}

# step SECONDS NAME COMMAND...: a test that fails if it takes longer.
step() {
  run_step "$@" || {
    printf 'FAILED: %s (see %s)\n' "$2" "$build/$2.log"
    count 0 1 0
  }
}

# step_of_turn NAME COMMAND...: a test for which the time that is left may not suffice: then it is skipped.
step_of_turn() {
  run_step "$(seconds_left)" "$@" || count 0 0 1
}

# step_with TOOL SECONDS NAME COMMAND...: as step; without TOOL, a skipped test.
step_with() {
  if command -v "$1" >/dev/null; then
    step "${@:2}"
  else
    printf 'bngrad: %s: skipped, no %s\n' "$3" "$1"
    count 0 0 1
  fi
}

# optional SECONDS NAME COMMAND...: runs a command that installs or builds something; where it fails, others are
# skipped. Its log is NAME.log.
optional() {
  mkdir -p "$build"
  limited "$1" "${@:3}" >"$build/$2.log" 2>&1
}

# run_lit NAME SECONDS BUILD_DIR TESTS... [OPTION...]: runs lit tests of a build and adds their totals. Tests that are
# not begun in that time are counted as skipped, and named in one line.
run_lit() {
  local name=$1 limit=$2 folder=$3 begin=$SECONDS
  local results=$folder/$name.json log=$folder/$name.log
  rm -f "$results"
  # A single test that hangs is ended after ten minutes.
  limited $((limit + 900)) "$python" "$llvm_prefix/bin/lit" -v --no-progress-bar --timeout=600 --max-time="$limit" \
    -o "$results" "${@:4}" >"$log" 2>&1 || true
  [ -f "$results" ] || fail "lit did not run: $(tail -n1 "$log")"
  grep -E '^(FAIL|TIMEOUT|UNRESOLVED|XPASS):' "$log" || true
  # shellcheck disable=SC2046
  count $("$python" "$root/scripts/count_results.py" "$results")
  local omitted
  omitted=$(sed -n 's/^ *Skipped *: *\([0-9]*\).*/\1/p' "$log")
  [ -z "$omitted" ] || printf 'bngrad: %s: %d tests were not begun in %d s\n' "$name" "$omitted" "$limit"
  report_time "$name" $begin
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

# Sets up the machine. What --all requires is an error if it is missing; the quick suite skips its tests.
install_tools() {
  packages+=(python3-dev python3-venv python3-psutil)
  setup
  # The tools that check the sources, which the build does not need.
  (packages=("clang-format-$llvm_version" "clang-tidy-$llvm_version") && setup) || true
  (packages=("${mpi_packages[@]}") && setup) ||
    printf 'bngrad: no Open MPI and MPICH, tests of several processes are skipped\n'
  optional 600 mutation-venv install_parser ||
    printf 'bngrad: no tree-sitter, tests of generated mutants are skipped: see %s\n' "$build/mutation-venv.log"
  if ! has_ptxas; then
    printf 'bngrad: installing ptxas\n'
    require_space 600 "$build"
    optional 900 ptxas install_ptxas && has_ptxas ||
      printf 'bngrad: no ptxas, its tests are skipped: %s\n' \
        "$(grep -m1 -i error "$build/ptxas.log" || tail -n1 "$build/ptxas.log")"
  fi
  optional 600 cuobjdump install_cuobjdump ||
    printf 'bngrad: no cuobjdump, its test is skipped: see %s\n' "$build/cuobjdump.log"
  [ $all -eq 1 ] || return 0
  local tool
  has_ptxas || fail "expected ptxas, see $build/ptxas.log"
  for tool in "clang-format-$llvm_version" "clang-tidy-$llvm_version"; do
    command -v "$tool" >/dev/null || fail "expected $tool"
  done
  (packages=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross) && setup) ||
    fail "expected qemu-user and a C compiler for AArch64"
  # Of the clients, the one that needs little space; scripts/clients.sh has all.
  optional 900 clients-venv install_clients "jax==$jax_version" ||
    printf 'bngrad: no jax, its modules are skipped: see %s\n' "$build/clients-venv.log"
  export BNGRAD_REQUIRE=aarch64,ptxas,clang-format,clang-tidy,openmpi,mpich${BNGRAD_REQUIRE:+,$BNGRAD_REQUIRE}
}

# Builds all, and the Python package; --all has those for PyTorch and JAX.
build_all() {
  local begin=$SECONDS has_package=0
  printf 'bngrad: building\n'
  limited 3600 build_tests || {
    [ $? -ne 124 ] || fail "expected the build to end within an hour"
    exit 1
  }
  report_time building $begin
  if [ $all -eq 1 ] && (require_space 5000 "$build") &&
    optional 1200 python-venv install_python "torch==$torch_version" "jax==$jax_version" "flax==$flax_version"; then
    has_package=1
  elif optional 600 python-venv install_python; then
    has_package=1
    [ $all -eq 0 ] || printf 'bngrad: no torch and jax, their tests are skipped: see %s\n' "$build/python-venv.log"
  else
    printf 'bngrad: no numpy and pytest, tests of the Python package are skipped: see %s\n' "$build/python-venv.log"
  fi
  [ $has_package -eq 0 ] || step 900 python build_python
}

# Forces the instruction set that has its turn (docs/debugging.md), unless BNGRAD_ISA is set. The tests use the whole
# CPU if it lacks that one, which counts as skipped.
force_isa() {
  local line name is_there
  [ -z "${BNGRAD_ISA:-}" ] || return 0
  line=$("$python" -B "$root/scripts/isa.py" "$build/bin" --turn="$commits") ||
    fail "expected the instruction sets of this CPU from scripts/isa.py, got an error"
  read -r name is_there <<<"$line"
  if [ "$is_there" = yes ]; then
    printf 'bngrad: BNGRAD_ISA=%s has its turn\n' "$name"
    export BNGRAD_ISA=$name
  else
    printf 'bngrad: BNGRAD_ISA=%s: skipped, this CPU lacks it\n' "$name"
    count 0 0 1
  fi
}

# The long tests that have their turn: every third, or all. They have a third of the time that is left.
run_long_tests() {
  local third=$((commits % 3)) i tests=() chosen=() limit
  mapfile -t tests < <(cd "$root/test" && grep -rlE '^[/# ]*REQUIRES:.*\blong\b' . | sort)
  # The unit tests take more cases.
  tests+=(./Unit)
  for i in "${!tests[@]}"; do
    [ "$share" != all ] && [ $((i % 3)) -ne $third ] || chosen+=("$build/test/${tests[i]#./}")
  done
  has_time "long tests" 120 || return 0
  limit=$(($(seconds_left) / 3))
  printf 'bngrad: long tests, %d of %d\n' ${#chosen[@]} ${#tests[@]}
  BNGRAD_COMMITS=$commits BNGRAD_LONG_TESTS=1 run_lit long-tests $limit "$build" "${chosen[@]}"
}

# Every warning of gcc is an error. The result is built but not run.
turn_gcc() {
  has_time gcc 600 || return 0
  step_of_turn gcc env BNGRAD_BUILD_DIR="$build/gcc" CC=gcc CXX=g++ \
    BNGRAD_CMAKE_FLAGS=-DBNGRAD_ENABLE_WERROR=ON "$root/scripts/build.sh"
}

# Each source compiled on its own, as developers do: the others compile several together.
turn_separate() {
  has_time separate 600 || return 0
  step_of_turn separate env BNGRAD_BUILD_DIR="$build/separate" BNGRAD_UNITY_BUILD=OFF \
    BNGRAD_CMAKE_FLAGS="-DBNGRAD_ENABLE_WERROR=ON -DBNGRAD_KERNEL_OBJECT_DIR=$build/lib/Runtime/Kernels" \
    "$root/scripts/build.sh"
}

# turn_sanitizers THIRD: asserts and sanitizers in BNGrad's code: that third of the quick suite, or `all` of it, then a
# short search with new seeds. The slowest tests are omitted, as they repeat code of other tests, and so are the
# mutants, whose tools are in the first build. A fault that the search finds may be older than the commit, and is only
# reported; test/Fuzz/replay.test fails for those that are stored, scripts/fuzz.sh for all.
turn_sanitizers() {
  local shard=()
  has_time sanitizers 720 || return 0
  step_of_turn asan-ubsan env BNGRAD_BUILD_DIR="$build/asan" \
    BNGRAD_BUILD_TYPE=RelWithDebInfo \
    BNGRAD_CMAKE_FLAGS="-DLLVM_USE_SANITIZER=Address;Undefined -DBNGRAD_ENABLE_ASSERTS=ON -DBNGRAD_BUILD_FUZZERS=ON -DBNGRAD_BUILD_KERNELS=OFF" \
    "$root/scripts/build.sh"
  [ -x "$build/asan/bin/bngrad-runner" ] && has_time "tests with sanitizers" 180 || return 0
  [ "$1" = all ] || shard=(--num-shards=3 --run-shard="$1")
  printf 'bngrad: tests with sanitizers, third: %s\n' "$1"
  run_lit tests-with-sanitizers $(($(seconds_left) - 120)) "$build/asan" "$build/asan/test" \
    --filter-out 'Conformance|Properties|Mutants' "${shard[@]}"
  has_time fuzz-libfuzzer 90 || return 0
  step 300 fuzz-libfuzzer search_for_faults
  grep -E '^fuzz: ' "$build/fuzz-libfuzzer.log" || true
}

# As many mutants as there is time for; their build and the tests without a mutant take ten minutes.
turn_mutants() {
  has_time mutants 900 || return 0
  step $(($(seconds_left) + 900)) mutants "$root/scripts/mutants.sh" --seconds="$(seconds_left)"
  grep -E '^(killed [0-9]* of|not begun)' "$build/mutants.log" || true
}

# Generated mutants of a few files, others with every commit, of the share of docs/mutation.md. Survivors are reported,
# and are no failure: that share was run on earlier sources.
turn_generated_mutants() {
  has_time "generated mutants" 600 || return 0
  step $(($(seconds_left) + 600)) generated-mutants "$root/scripts/mutants.sh" --generate --percent=7 --most-files=5 \
    --seconds=$(($(seconds_left) - 60)) --least=0 --seed="$commits"
  grep -E '^(SURVIVED|generated mutants:)' "$build/generated-mutants.log" || true
}

turns=(turn_gcc "turn_sanitizers 1" turn_mutants turn_separate "turn_sanitizers 2" turn_generated_mutants
  "turn_sanitizers 3")
run_turns() {
  local turn
  if [ "$share" = all ]; then
    for turn in turn_gcc turn_separate "turn_sanitizers all" turn_mutants turn_generated_mutants; do $turn; done
  else
    turn=${turns[$((commits % ${#turns[@]}))]}
    printf 'bngrad: the turn of this commit, %d of %d: %s\n' $((commits % ${#turns[@]} + 1)) ${#turns[@]} "${turn#turn_}"
    $turn
  fi
}

install_tools
build_all
step_with "clang-format-$llvm_version" 300 format "$root/scripts/check_format.sh"
step 120 structure "$python" "$root/scripts/check_structure.py"
if [ $all -eq 0 ]; then
  step_with "clang-tidy-$llvm_version" 900 tidy "$root/scripts/check_tidy.sh" --changed
  [ ! -f "$build/tidy.log" ] || tail -n 1 "$build/tidy.log"
fi
printf 'bngrad: running the tests\n'
isa=${BNGRAD_ISA:-}
[ $all -eq 0 ] || force_isa
# Cases with expected values have a step of their own.
required=${BNGRAD_REQUIRE:-}
# Other builds lack the parser.
[ $all -eq 0 ] || export BNGRAD_REQUIRE=$required,tree-sitter
BNGRAD_COMMITS=$commits run_lit tests 3600 "$build" "$build/test" --filter-out 'Conformance/conformance\.test'
export BNGRAD_ISA=$isa BNGRAD_REQUIRE=$required

if [ -n "${BNGRAD_CONFORMANCE_DIR:-}" ]; then
  step 1800 conformance cmake --build "$build" --target check-bngrad-conformance
  grep -E '^(parametric|conformance):' "$build/conformance.log" || true
fi

if [ $all -eq 1 ]; then
  step 900 demo "$root/scripts/demo.sh"
  step 120 readme "$python" "$root/scripts/check_readme.py" "$root/README.md" "$build/demo.log"
  step 1200 install "$root/scripts/check_install.sh"
  # One Python tests the wheels with PyTorch and JAX; with BNGRAD_SHARE=all, every Python does.
  how=--quick
  [ "$share" != all ] || how=''
  step 2400 wheels "$root/scripts/wheels.sh" $how
  grep -E '^bngrad: .*(bytes|passed|omitted|not tested|not run)' "$build/wheels.log" || true
  tidy_share=6
  [ "$share" != all ] || tidy_share=1
  if has_time tidy 240; then
    step 3600 tidy "$root/scripts/check_tidy.sh" --share=$tidy_share
    tail -n 1 "$build/tidy.log"
  fi
  if has_time fuzz-allocations 120; then
    step 900 fuzz-allocations "$root/fuzz/allocations/hunt.py" "$build" --most=12 --seed=$((commits + 1))
    tail -n 1 "$build/fuzz-allocations.log"
  fi
  run_long_tests
  run_turns
fi

printf 'bngrad: finished in %d s\n' $SECONDS
printf 'bngrad: %d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
