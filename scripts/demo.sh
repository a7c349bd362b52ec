#!/usr/bin/env bash
# Sets up a fresh machine, builds, and demonstrates BNGrad: the gradient of a
# batch norm over real images, a training step, and the time of a ResNet-50 layer.

. "$(dirname "$0")/common.sh"

setup
printf 'bngrad: building\n'
build bngrad-opt bngrad-runner
digits=$root/examples/digits
bin=$build/bin
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

title() {
  printf '\n== %s\n' "$1"
}

title "The gradient of a batch norm over 64 images (examples/digits/digits.mlir)"
grep -v '^//' "$digits/digits.mlir"

title "Decomposed (bngrad-opt --bngrad-decompose), types and maps left out"
"$bin/bngrad-opt" "$digits/digits.mlir" --bngrad-decompose |
  sed -n -e '/func.func/,/return/p' |
  sed -e 's/indexing_maps = \[[^]]*\], //' -e 's/ : [^{]*) outs/) outs/' \
    -e 's/\(outs([^:]*\) : [^)]*)/\1)/' -e 's/ -> (.*) {/ {/' \
    -e '/tensor.empty\|linalg.fill\|arith.constant\|\^bb/d' |
  cut -c1-120

title "Compiled, run, and checked against the reference in long double"
"$bin/bngrad-runner" "$digits/digits.mlir" \
  --arg="$digits/grad_output.npy" --arg="$digits/input.npy" \
  --arg="$digits/scale.npy" --arg="$digits/mean.npy" \
  --arg="$digits/variance.npy" \
  --result="$results/grad_input.npy" --result="$results/grad_scale.npy" \
  --result="$results/grad_offset.npy" --check

title "Compared with gradients from automatic differentiation"
"$python" -B "$digits/compare.py" \
  "$results/grad_input.npy" "$digits/expected_grad_input.npy" \
  "$results/grad_scale.npy" "$digits/expected_grad_scale.npy" \
  "$results/grad_offset.npy" "$digits/expected_grad_offset.npy"

title "A training step in StableHLO: forward, gradient and new parameters (examples/aot/step.mlir)"
"$bin/bngrad-runner" "$root/examples/aot/step.mlir" \
  --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --check

title "The gradient of a layer of ResNet-50: 32x64x112x112, f32, NCHW, 2 threads"
"$bin/bngrad-runner" "$root/examples/resnet50/layer.mlir" \
  --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 \
  --check --benchmark=20 --threads=2
