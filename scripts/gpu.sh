#!/usr/bin/env bash
# Compiles the functions of the GPU suite ahead of time, without a GPU, packs
# them, and runs the suite: correctness, compute-sanitizer, times of BNGrad and
# PyTorch, DRAM bytes.
#
#   scripts/gpu.sh                           on a machine with an NVIDIA GPU and
#                                            PyTorch: into bench/results/gpu.*
#   scripts/gpu.sh --dry-run                 on the emulator, into build/gpu/results
#   scripts/gpu.sh --bundle-only=OUT.tar.gz  only pack; on the machine with the GPU:
#     tar xf OUT.tar.gz && python3 bngrad-gpu/suite.py --output=FOLDER
#   scripts/gpu.sh --few --no-cubins --shapes=REGEX --only=PART,... --minutes=N --output=FOLDER
#
# Objects have cubins as well if a CUDA toolkit is found, unless --no-cubins.
# BNGRAD_TOOLS names a folder with built tools, next to a folder lib.
# BNGRAD_PYTHON is the Python with PyTorch (python3). bench/README.md explains
# the result.

. "$(dirname "$0")/common.sh"

dry_run='' bundle='' output=${OUT:-} few=() shapes=() run=()
for argument in "$@"; do
  case $argument in
  --dry-run) dry_run=1 ;;
  --bundle-only=?*) bundle=${argument#*=} ;;
  --output=?*) output=${argument#*=} ;;
  --few | --no-cubins) few+=("$argument") ;;
  --shapes=*) shapes=("$argument") ;;
  --only=?* | --minutes=?*) run+=("$argument") ;;
  *) fail "expected --dry-run, --bundle-only=OUT.tar.gz, --few, --no-cubins, --shapes=REGEX, --only=PART,..., --minutes=N or --output=FOLDER, got '$argument'" ;;
  esac
done
if [ -z "$dry_run$bundle" ]; then
  nvidia-smi -L >/dev/null 2>&1 ||
    fail "expected an NVIDIA GPU; without one, use --dry-run or --bundle-only"
fi

tools=${BNGRAD_TOOLS:-$build/bin}
work=$build/gpu
if [ -z "${BNGRAD_TOOLS:-}" ]; then
  setup
  build bngrad-opt bngrad-compile BNGradCudaRuntime BNGradCudaEmulator
fi
libraries=$(dirname "$tools")/lib
require_space 400 "$work"
"$python" -B "$root/bench/gpu/bundle.py" --tools="$tools" \
  --libraries="$libraries" --work="$work" \
  --output="${bundle:-$work/bngrad-gpu.tar.gz}" "${few[@]}" "${shapes[@]}"
[ -z "$bundle" ] || exit 0

if [ -n "$dry_run" ]; then
  exec "$python" -B "$work/bngrad-gpu/suite.py" --dry-run \
    --library="$libraries/libBNGradCudaEmulator.so" \
    --output="${output:-$work/results}" "${shapes[@]}" "${run[@]}"
fi
status=0
"${BNGRAD_PYTHON:-python3}" -B "$work/bngrad-gpu/suite.py" \
  --output="${output:-$work/results}" "${shapes[@]}" "${run[@]}" || status=$?
# Without a report, the suite has said why.
if [ -z "$output" ] && [ -f "$work/results/gpu.md" ]; then
  cp "$work"/results/gpu.{md,json,svg} "$root/bench/results"
fi
exit $status
