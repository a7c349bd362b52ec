// The tools and libraries that generate or run code for this machine refuse a bad BNGRAD_ISA with one line.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py \
// DEFINE:   "BNGRAD_ISA: expected an instruction set that this CPU has (...), got 'vax'" env BNGRAD_ISA=vax
// RUN: %{fails} bngrad-compile %s -o %t.o
// RUN: %{fails} bngrad-compile %s -o %t.o --mcpu=native
// RUN: %{fails} bngrad-compile %s -o %t.o --target=cuda
// RUN: %{fails} bngrad-runner %s --arg=random:1
// RUN: %{fails} bngrad-runner %s --arg=random:1 --target=cuda-emulator
// RUN: %{fails} bngrad-opt %s --bngrad-cpu-pipeline
// RUN: %{fails} bngrad-opt %s "--pass-pipeline=builtin.module(bngrad-cpu-pipeline)"
// RUN: %{fails} bngrad-opt %s --bngrad-cpu-pipeline="vector-bits=256 fma=true"

// A value that the CPU lacks or that is misspelled is no better.
// RUN: %if !x86-64-v4 %{ %python %S/../Inputs/expect_error.py "BNGRAD_ISA: ..., got 'x86-64-v4'" \
// RUN:   env BNGRAD_ISA=x86-64-v4 bngrad-runner %s --arg=random:1 %}
// RUN: %python %S/../Inputs/expect_error.py "BNGRAD_ISA: ..., got 'x86-64-v'" \
// RUN:   env BNGRAD_ISA=x86-64-v bngrad-runner %s --arg=random:1

// Nothing depends on the host here.
// RUN: env BNGRAD_ISA=vax bngrad-opt %s --bngrad-cpu-pipeline="vector-bits=256 fma=true bf16-conversion=false f16-conversion=true" -o %t.mlir
// RUN: env BNGRAD_ISA=vax bngrad-opt %s --bngrad-cuda-pipeline -o %t.mlir
// RUN: env BNGRAD_ISA=vax bngrad-opt %s --bngrad-to-linalg -o %t.mlir
// RUN: env BNGRAD_ISA=vax bngrad-opt --version

// The pipeline has the properties of the instruction set as options of its passes, so that the printed pipeline
// reproduces the run elsewhere.
// RUN: %if x86-64-v3 %{ env BNGRAD_ISA=x86-64-v3 bngrad-opt %s --bngrad-cpu-pipeline -o %t.mlir --dump-pass-pipeline 2> %t.dump %}
// RUN: %if x86-64-v3 %{ FileCheck %s --check-prefix=DUMP --input-file=%t.dump %}
// RUN: %if x86-64-v3 %{ sed -e "1s/.*/--pass-pipeline='/" -e "\$s/\$/'/" %t.dump > %t.arguments %}
// RUN: %if x86-64-v3 %{ env BNGRAD_ISA=x86-64-v2 bngrad-opt %s @%t.arguments | diff %t.mlir - %}
// DUMP: bngrad-group{{.*}}fma=true{{.*}}vector-bits=256

// scripts/isa.py has the same list: as many values as this CPU runs.
// RUN: %python %bngrad_src_root/scripts/isa.py %bngrad_obj_root/bin > %t.sets
// RUN: grep -c " yes$" %t.sets | grep -v "^0$"

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
