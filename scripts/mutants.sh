#!/usr/bin/env bash
# Applies each one-line edit of test/mutants.txt to a copy of the sources,
# rebuilds, and runs the quick tests, then the long tests of the file: an edit that no test notices is a gap in
# the tests. Prints `killed K of N` and fails if K < N.
#
#   scripts/mutants.sh                all of them
#   scripts/mutants.sh --seconds=N    those that can be begun in that time, from
#                                     another one on with every commit
#   scripts/mutants.sh --matching=REGEX  those whose line matches
#
# A line of test/mutants.txt is FILE, OLD and NEW, separated by ` ## `; OLD must
# occur exactly once in FILE. A fourth field is the number of tests that must
# fail (default 1).
#
#   scripts/mutants.sh --generate [--seconds=N] [--count=N] [--seed=N]
#                      [--files=REGEX] [--report] ...
#                                     mutants of lib/ made by machine, compiled in
#                                     at once (scripts/mutation, --generate --help)

. "$(dirname "$0")/common.sh"

# The ready kernels are those of the compiler without a mutant. Linking LLVM
# statically would take seconds per mutant.
settings=(-DBNGRAD_FREEZE_KERNELS=ON -DBNGRAD_STATIC_LLVM=OFF)
if [ "${1:-}" = --generate ]; then
  packages+=(python3-venv)
  setup
  install_parser ||
    fail "expected tree-sitter and tree-sitter-cpp from PyPI, see $build/mutation-venv.log"
  # A mutated source has precompiled headers of its own, and is not compiled together with others.
  settings+=(-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON)
  BNGRAD_CONFIGURE=$(configuration && printf '%s\n' "${settings[@]}") BNGRAD_LIT_PATH=$llvm_prefix/utils/lit \
    exec "$build/mutation-venv/bin/python" "$root/scripts/mutation" "${@:2}"
fi

seconds='' matching=.
case "${1:-}" in
  "") ;;
  --seconds=?*) seconds=${1#*=} ;;
  --matching=?*) matching=${1#*=} ;;
  *) fail "expected no option, --seconds=N or --matching=REGEX, got '$1'" ;;
esac
started=$SECONDS
mapfile -t mutants < <(grep -v -e '^#' -e '^$' "$root/test/mutants.txt" | grep -E -- "$matching")
[ ${#mutants[@]} -gt 0 ] || fail "expected mutants that match '$matching', got none"

setup
copy=$build/mutants
rm -rf "$copy"
mkdir -p "$copy/source"
(cd "$root" && list_sources | tar -cf - -T -) |
  tar -xf - -C "$copy/source"
# The same place in the sources as in the original, so that ccache hits.
export BNGRAD_BUILD_DIR=$copy/source/build
export CCACHE_BASEDIR=$copy/source
unset BNGRAD_LONG_TESTS

# tests_of FILE: the tests of FILE, as a filter of lit.
tests_of() {
  case "$1" in
    lib/Dialect/*) echo ':: (Dialect|Transforms|Pipelines)/' ;;
    lib/Runtime/API/*) echo 'Unit.*API|:: Runtime/' ;;
    # One MPI is enough, as both have the same source.
    lib/Runtime/Distributed/*) echo 'Unit.*Distributed|Distributed/.*mpich' ;;
    lib/Transforms/Partition/*) echo ':: (Dialect|Transforms|Pipelines)/|Distributed/.*mpich' ;;
    lib/Runtime/Cuda/*) echo 'Unit.*Cuda|:: Runtime/' ;;
    lib/Reference/* | lib/Runtime/*) echo 'Unit|:: Runner/' ;;
    lib/Transforms/Apply/GPU/* | lib/Transforms/Lower/NVVM/* | lib/Transforms/Lower/SelectByDevice* | \
      lib/Transforms/Schedule/Gpu* | lib/Transforms/Schedule/Cuda*)
      echo ':: (Transforms|Pipelines)/|CUDA' ;;
    lib/Transforms/*)
      echo ':: (Transforms|Pipelines|Compile)/|Integration/CPU' ;;
    bench/gpu/*) echo ':: GpuSuite/' ;;
    bench/compilers/* | bench/machine.py) echo ':: Scripts/compilers' ;;
    bench/native/*) echo ':: Scripts/bench-hand' ;;
    bench/judge.py | bench/measure.py | bench/report.py) echo ':: Scripts/(bench|compilers)' ;;
    tools/bngrad-compile/*) echo ':: Compile/' ;;
    tools/bngrad-runner/Shard* | tools/bngrad-runner/Processes.cpp) echo 'Distributed/.*mpich' ;;
    tools/bngrad-runner/*) echo ':: Runner/' ;;
    python/*) echo ':: Python/' ;;
    ptx-emulator/*) echo ':: PtxEmulator/|CUDA' ;;
    *) echo . ;;
  esac
}

# The Python package, for its mutants alone: its tests take long. Without the Python that scripts/test.sh --all
# installs, they are skipped.
original=$build
build_package() {
  (
    root=$copy/source build=$BNGRAD_BUILD_DIR
    ln -sfn "$original/python-venv" "$build/python-venv"
    build_python
  ) >>"$copy/build.log" 2>&1
}

# run_tests [OPTION...]: prints PASSED FAILED SKIPPED. The slowest tests are
# omitted: with them each mutant would take minutes. A mutant that hangs counts
# as noticed.
run_tests() {
  local slow='Conformance|Properties|numpy|numerics|ptxas.test|broken.test|Mutants|Fuzz/(quick|mistakes)'
  case "${file:-}" in bench/gpu/*) ;; *) slow+='|GpuSuite' ;; esac
  rm -f "$copy/lit.json"
  (
    # A soft limit: some tests set a limit of their own.
    ulimit -S -v 16000000
    timeout "${limit:-300}" "$python" "$llvm_prefix/bin/lit" -q --no-progress-bar \
      --filter-out "$slow" \
      "$@" -o "$copy/lit.json" "$BNGRAD_BUILD_DIR/test"
  ) >"$copy/lit.log" 2>&1 || true
  if [ -f "$copy/lit.json" ]; then
    "$python" "$root/scripts/count_results.py" "$copy/lit.json"
  else
    echo 0 99 0
  fi
}

BNGRAD_CMAKE_FLAGS="${settings[*]}" "$copy/source/scripts/build.sh"
read -r passed failed skipped < <(limit=900 run_tests --verbose)
if [ "$failed" -gt 0 ]; then
  tail -n 12 "$copy/lit.log"
  fail "expected all tests to pass without a mutant, got $failed failures (see $copy/lit.log)"
fi
printf 'without a mutant: %d tests pass\n' "$passed"

first=0
if [ -n "$seconds" ]; then
  commits=$(count_commits)
  first=$((commits * 7 % ${#mutants[@]}))
fi
killed=0 total=0
for i in "${!mutants[@]}"; do
  line=${mutants[(first + i) % ${#mutants[@]}]}
  if [ -n "$seconds" ] && [ $((SECONDS - started)) -gt "$seconds" ]; then
    printf 'not begun: %d of %d\n' $((${#mutants[@]} - total)) ${#mutants[@]}
    break
  fi
  if [[ $line == python/* && ! -d $original/python-venv ]]; then
    printf 'no %s: %s\n' "$original/python-venv" "$line"
    continue
  fi
  total=$((total + 1))
  least=$("$python" "$root/scripts/apply_mutant.py" "$copy/source" "$line") ||
    fail "test/mutants.txt: cannot apply '$line'"
  file=${line%% ## *}
  if cmake --build "$BNGRAD_BUILD_DIR" --target all check-bngrad-depends \
    >"$copy/build.log" 2>&1 && { [[ $file != python/* ]] || build_package; }; then
    # The quickest tests first, then those of the file, then all: failures of any
    # test count. Each run stops after the required number of them.
    filters=(':: (Dialect|Transforms|Pipelines)/' "$(tests_of "$file")" .)
    # No other test reads them.
    case $file in
      bench/gpu/*) filters=(':: GpuSuite/reports' "$(tests_of "$file")") ;;
      python/*) filters=("$(tests_of "$file")") ;;
    esac
    for filter in "${filters[@]}"; do
      read -r passed failed skipped < <(
        run_tests --filter "$filter" --max-failures "$least"
      )
      [ "$failed" -lt "$least" ] || break
    done
    # What the quick tests omit may still be detected by the long tests of the file.
    if [ "$failed" -lt "$least" ]; then
      read -r passed failed skipped < <(
        limit=900 BNGRAD_LONG_TESTS=1 run_tests --filter "$(tests_of "$file")" --max-failures "$least"
      )
    fi
    if [ "$failed" -ge "$least" ]; then
      killed=$((killed + 1))
      printf 'killed: %s\n' "$line"
    else
      printf 'SURVIVED (%d failures, expected %d): %s\n' "$failed" "$least" "$line"
    fi
  else
    printf 'DOES NOT BUILD: %s\n' "$line"
  fi
  cp -p "$root/$file" "$copy/source/$file"
  touch "$copy/source/$file"
  rm -rf "$BNGRAD_BUILD_DIR/python/site"
done
printf 'killed %d of %d\n' $killed $total
[ $killed -eq $total ]
