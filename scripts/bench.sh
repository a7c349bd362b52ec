#!/usr/bin/env bash
# Sets up a fresh machine, builds, and compares the CPU code with oneDNN,
# PyTorch, a hand-written kernel and the memory bandwidth.
#
#   scripts/bench.sh            everything, into bench/results/cpu.{md,json,svg}
#   scripts/bench.sh --quick    few shapes and rounds, into build/bench/quick.*
#   scripts/bench.sh --assert   exit 1 and list every exceeded limit
#   scripts/bench.sh --thresholds  measure the limits of the choice of a schedule
#   scripts/bench.sh --ready    compare the C library with kernels for one shape
#   scripts/bench.sh --shapes=REGEX --peers=REGEX --rounds=N --output=BASE
#
# BNGRAD_TOOLS names a folder with finished bngrad-compile, bngrad-opt and bngrad-runner;
# BNGRAD_BENCH_PEERS=none measures without downloading PyTorch and oneDNN (1.3
# GB). OMP_NUM_THREADS is 2 unless it is set. bench/README.md explains the
# result.

. "$(dirname "$0")/common.sh"

packages+=(python3-venv libdnnl-dev git)
work=$build/bench
venv=$work/venv

# install_peer NAME COMMAND...: installs a peer once. A failure leaves the peer
# absent, with the reason in NAME.absent, and is tried again next time.
install_peer() {
  local log=$work/$1.log
  [ ! -f "$venv/$1.stamp" ] || return 0
  require_space 4000 "$work"
  printf 'bngrad: installing %s\n' "$1"
  rm -f "$work/$1.absent"
  if "${@:2}" >"$log" 2>&1; then
    touch "$venv/$1.stamp"
  else
    { grep -m1 -i error "$log" || tail -n1 "$log"; } >"$work/$1.absent"
  fi
}

# libtorch_cpu links two small CUDA libraries, of the versions that the wheel
# requires. Gigabytes of libraries for GPUs are not installed.
install_torch() {
  "$venv/bin/pip" install --no-deps torch || return
  "$venv/bin/python" - >"$work/cuda.txt" <<'PYTHON' || return
import importlib.metadata, re
for line in importlib.metadata.requires("torch"):
    found = re.match(r"cuda-toolkit\[.*\](==[\d.]+)", line)
    if found:
        print("cuda-toolkit[cudart,cupti]" + found[1])
PYTHON
  "$venv/bin/pip" install -r "$work/cuda.txt"
}

setup
mkdir -p "$work"
if [ -z "${BNGRAD_TOOLS:-}" ]; then
  printf 'bngrad: building\n'
  build bngrad-compile bngrad-opt bngrad-runner BNGradRuntime
fi
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" || fail "cannot create $venv"
fi
"$venv/bin/python" -c 'import numpy, matplotlib' 2>/dev/null ||
  "$venv/bin/pip" install numpy matplotlib >"$work/pip.log" 2>&1 ||
  fail "cannot install numpy and matplotlib: $(tail -n1 "$work/pip.log")"
if [ "${BNGRAD_BENCH_PEERS:-}" != none ]; then
  install_peer oneDNN "$venv/bin/pip" install onednn onednn-devel
  install_peer PyTorch install_torch
fi

# One OpenMP runtime for all libraries, its threads bound to cores. Not by
# OMP_PROC_BIND: GNU's runtime, which is also loaded but never called, would
# bind the first thread and leave the other runtime one core.
unset OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} OMP_DYNAMIC=false
export KMP_AFFINITY=granularity=core,compact
export LD_PRELOAD=$llvm_prefix/lib/libomp.so.5
exec "$venv/bin/python" -B "$root/bench/bench.py" --tools="${BNGRAD_TOOLS:-$build/bin}" \
  --work="$work" "$@"
