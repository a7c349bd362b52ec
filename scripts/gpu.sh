#!/usr/bin/env bash
# Compiles the functions of the GPU suite ahead of time, without a GPU, packs
# them, and runs the calls of the suite: times beside those of PyTorch and
# others; checks of results, compute-sanitizer, DRAM bytes; and, with wheels,
# PyTorch and JAX with and without BNGrad.
#
#   scripts/gpu.sh                           on a machine with an NVIDIA GPU and
#                                            PyTorch: into bench/results/<device>.*
#   scripts/gpu.sh --dry-run                 on the emulator, into build/gpu/results
#   scripts/gpu.sh --bundle-only=OUT.tar.gz  only pack; on the machine with the GPU:
#     tar xf OUT.tar.gz && python3 bngrad-gpu/suite.py --call=times --output=FOLDER
#     python3 bngrad-gpu/suite.py --call=checks --output=FOLDER
#     python3 bngrad-gpu/suite.py --call=frameworks --output=FOLDER
#   scripts/gpu.sh --call=times|checks|frameworks --wheels=FOLDER --few --no-cubins --shapes=REGEX --only=PART,...
#     --minutes=N --retry --output=FOLDER
#
# Functions are cubins as well if a CUDA toolkit is found, unless --no-cubins.
# BNGRAD_TOOLS names a folder with built tools, next to a folder lib.
# --wheels packs the newest wheels of scripts/wheels.sh, for Python 3.12 and later.
# BNGRAD_PYTHON is the Python with PyTorch (python3). bench/README.md explains
# the result.

. "$(dirname "$0")/common.sh"

dry_run='' bundle='' output=${OUT:-} few=() shapes=() run=() calls=(times checks)
for argument in "$@"; do
  case $argument in
  --dry-run) dry_run=1 ;;
  --bundle-only=?*) bundle=${argument#*=} ;;
  --output=?*) output=${argument#*=} ;;
  --call=times | --call=checks | --call=frameworks) calls=("${argument#*=}") ;;
  --wheels=?*) few+=("$argument") calls+=(frameworks) ;;
  --few | --no-cubins) few+=("$argument") ;;
  --shapes=*) shapes=("$argument") ;;
  --only=?* | --minutes=?* | --retry) run+=("$argument") ;;
  *) fail "expected --dry-run, --bundle-only=OUT.tar.gz, --call=times|checks|frameworks, --wheels=FOLDER, --few, --no-cubins, --shapes=REGEX, --only=PART,..., --minutes=N, --retry or --output=FOLDER, got '$argument'" ;;
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
  build bngrad-opt bngrad-compile BNGradCudaRuntime ${dry_run:+BNGradCudaEmulator}
fi
libraries=$(dirname "$tools")/lib
require_space 400 "$work"
# The emulator runs PTX alone.
[ -z "$dry_run" ] || few+=(--no-cubins)
# The disassembler, for the times that the model calculates. Without it, there are none.
nvdisasm=$(command -v nvdisasm || true)
if [ -z "$nvdisasm" ] && [ ${#few[@]} -eq 0 ]; then
  timeout 120 bash -c '. "$1" && install_cuobjdump' - "$root/scripts/common.sh" >"$work/cuobjdump.log" 2>&1 ||
    printf 'bngrad: no nvdisasm, and so no calculated times: see %s\n' "$work/cuobjdump.log"
  nvdisasm=$build/cuda-binutils/nvidia/cu13/bin/nvdisasm
fi
"$python" -B "$root/bench/gpu/bundle.py" --tools="$tools" \
  --libraries="$libraries" --work="$work" ${nvdisasm:+--nvdisasm="$nvdisasm"} \
  --output="${bundle:-$work/bngrad-gpu.tar.gz}" "${few[@]}" "${shapes[@]}"
[ -z "$bundle" ] || exit 0

results=${output:-$work/results}
suite=("${BNGRAD_PYTHON:-python3}")
options=(--output="$results" "${shapes[@]}" "${run[@]}")
if [ -n "$dry_run" ]; then
  suite=("$python")
  options+=(--dry-run --library="$libraries/libBNGradCudaEmulator.so")
fi
status=0
: >"$work/output"
for call in "${calls[@]}"; do
  "${suite[@]}" -B "$work/bngrad-gpu/suite.py" --call="$call" "${options[@]}" | tee -a "$work/output" || status=$?
done
# The files have the name of the device, which the last line has. The folder may have those of others.
if [ -z "$dry_run$output" ]; then
  written=$(sed -n 's/^written: \(.*\)\.md, \.json, \.svg$/\1/p' "$work/output" | tail -1)
  [ -z "$written" ] || cp "$written".{md,json,svg} "$root/bench/results"
fi
exit $status
