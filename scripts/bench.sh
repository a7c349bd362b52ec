#!/usr/bin/env bash
# Sets up a fresh machine, builds, and compares the CPU code with oneDNN,
# PyTorch, a hand-written kernel and the memory bandwidth.
#
#   scripts/bench.sh            everything, into bench/results/cpu-<instruction set>.{md,json,svg}
#   scripts/bench.sh --quick    few shapes and rounds, into build/bench/quick-<instruction set>.*
#   scripts/bench.sh --assert   exit 1 and list every exceeded limit
#   scripts/bench.sh --thresholds  measure the limits of the choice of a schedule
#   scripts/bench.sh --ready    compare the C library with kernels for one shape
#   scripts/bench.sh --compilers  compare with JAX, torch.compile, IREE and upstream MLIR
#   scripts/bench.sh --isa=NAME hold BNGrad and all others to an older instruction set, a value of BNGRAD_ISA
#   scripts/bench.sh --shapes=REGEX --peers=REGEX --rounds=N --output=BASE
#
# BNGRAD_TOOLS names a folder with finished bngrad-compile, bngrad-opt and bngrad-runner;
# BNGRAD_BENCH_PEERS=none measures without downloading PyTorch and oneDNN (1.3
# GB), or JAX and IREE. OMP_NUM_THREADS is 2 unless it is set. bench/README.md explains the
# result.

. "$(dirname "$0")/common.sh"

packages+=(python3-venv libdnnl-dev git)
work=$build/bench
venv=$work/venv

# install_peer NAME COMMAND...: installs a peer once. A failure leaves the peer
# absent, with the reason in NAME.absent, and is tried again next time.
install_peer() {
  local log=$work/$1.log stamp="$venv/installed-${*:2}"
  [ ! -f "$stamp" ] || return 0
  require_space 4000 "$work"
  printf 'bngrad: installing %s\n' "$1"
  rm -f "$work/$1.absent"
  if "${@:2}" >"$log" 2>&1; then
    touch "$stamp"
  else
    { grep -m1 -i error "$log" || tail -n1 "$log"; } >"$work/$1.absent"
  fi
}

# pip_install PACKAGE..., torch_install PACKAGE: into the environment of the benchmark.
pip_install() {
  "$venv/bin/pip" install "$@"
}

torch_install() {
  install_torch "$venv" "$@"
}

compilers=0
for option; do
  [ "$option" != --compilers ] || compilers=1
done
[ $compilers = 0 ] || packages+=(python3-dev)
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
  install_peer PyTorch torch_install "torch==$torch_version"
  if [ $compilers = 1 ]; then
    install_peer JAX pip_install "jax==$jax_version"
    install_peer IREE pip_install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
  else
    install_peer oneDNN pip_install onednn onednn-devel
  fi
fi

export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
run=("$venv/bin/python" -B "$root/bench/bench.py" "--tools=${BNGRAD_TOOLS:-$build/bin}" "--work=$work")
# Each compiler has a process with a runtime of its own.
[ $compilers = 0 ] || exec "${run[@]}" "$@"

# One OpenMP runtime for all libraries, its threads bound to cores. Not by
# OMP_PROC_BIND: GNU's runtime, which is also loaded but never called, would
# bind the first thread and leave the other runtime one core.
unset OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY
export OMP_DYNAMIC=false KMP_AFFINITY=granularity=core,compact
export LD_PRELOAD=$llvm_prefix/lib/libomp.so.5
exec "${run[@]}" "$@"
