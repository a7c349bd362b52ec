#!/usr/bin/env bash
# Searches for faults with all fuzzers (fuzz/README.md), one after the other.
#
#   scripts/fuzz.sh [--minutes=N] [--seed=N] [--only=NAME]
#
# N minutes in total (default: 480), divided among them; NAME is programs,
# views, special, chains, bounds, libfuzzer or allocations. Failing inputs are minimized and
# kept in build/fuzz. Prints progress lines, and at the end one line per fuzzer:
# inputs, faults, seeds. Fails if a fault was found.

. "$(dirname "$0")/common.sh"

minutes=480 seed=$(($(date +%s) % 1000000)) only=''
for option in "$@"; do
  case "$option" in
    --minutes=[1-9]*) minutes=${option#*=} ;;
    --seed=[0-9]*) seed=${option#*=} ;;
    --only=?*) only=${option#*=} ;;
    *) fail "expected --minutes=N, --seed=N or --only=NAME, got '$option'" ;;
  esac
done

# The share of the time of each fuzzer.
declare -A shares=([programs]=9 [views]=4 [special]=2 [chains]=2 [bounds]=1 [libfuzzer]=8 [allocations]=1)
names=(programs views special chains bounds libfuzzer allocations)
[ -z "$only" ] || {
  [ -n "${shares[$only]:-}" ] || fail "expected --only to be one of ${names[*]}, got '$only'"
  names=("$only")
}
total=0
for name in "${names[@]}"; do
  total=$((total + shares[$name]))
done

# run NAME SECONDS: runs one fuzzer, which prints its progress.
run() {
  local name=$1 seconds=$2 hunter=$root/fuzz/programs/hunt.py
  case "$name" in
    libfuzzer) "$python" "$root/fuzz/libfuzzer/run.py" --seconds="$seconds" --seed="$seed" ;;
    bounds) "$python" "$root/fuzz/programs/bounds.py" --bin="$build/bin" --seed="$seed" --seconds="$seconds" ;;
    allocations) timeout "$((seconds + 60))" "$python" "$root/fuzz/allocations/hunt.py" "$build" --seed="$seed" ;;
    *) "$python" "$hunter" --bin="$build/bin" --kind="$name" --first="$((seed * 1000))" \
      --seconds="$seconds" --processes="$(nproc)" --reduce=300 --output="$build/fuzz" ;;
  esac
}

setup
build
mkdir -p "$build/fuzz"
printf 'fuzz: seed %s, %s minutes\n' "$seed" "$minutes"
failed=0 lines=()
for name in "${names[@]}"; do
  log=$build/fuzz/$name.log
  printf 'fuzz: %s\n' "$name"
  run "$name" $((minutes * 60 * shares[$name] / total)) 2>&1 | tee "$log" || failed=1
  if [ "$name" = libfuzzer ]; then
    mapfile -t -O ${#lines[@]} lines < <(grep -E '^fuzz: [a-z-]+: [0-9]+ inputs' "$log" || echo "libfuzzer: did not run")
  else
    lines+=("$(tail -n 1 "$log"), --seed=$seed")
  fi
done
printf '%s\n' "${lines[@]}"
exit $failed
