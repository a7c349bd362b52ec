// Options with named values: their meaning in a pipeline, and an error that lists them for any other value.

// DEFINE: %{option} =
// DEFINE: %{value} =
// DEFINE: %{names} =
// DEFINE: %{fail} = not bngrad-opt %s --bngrad-%{option}=%{value} 2>&1 | \
// DEFINE:   FileCheck %s --implicit-check-not=rror --match-full-lines "-DVALUE=%{value}" "-DNAMES=%{names}"
// CHECK: bngrad-opt: for the --{{[a-z0-9-]+}} option: expected [[NAMES]], got '[[VALUE]]'

// REDEFINE: %{names} = import, partition, decompose, fuse, group, bufferize, apply or lower
// REDEFINE: %{value} = maybe
// REDEFINE: %{option} = cpu-pipeline=stop-after
// RUN: %{fail}
// REDEFINE: %{option} = cuda-pipeline=stop-after
// RUN: %{fail}
// REDEFINE: %{value} =
// RUN: %{fail}
// REDEFINE: %{names} = import, partition, decompose or fuse
// REDEFINE: %{option} = to-linalg=stop-after
// REDEFINE: %{value} = group
// RUN: %{fail}
// REDEFINE: %{names} = host, true or false
// REDEFINE: %{option} = cpu-pipeline=bf16-conversion
// REDEFINE: %{value} = maybe
// RUN: %{fail}
// REDEFINE: %{option} = cpu-pipeline=f16-conversion
// RUN: %{fail}
// REDEFINE: %{option} = cpu-pipeline=fma
// RUN: %{fail}
// REDEFINE: %{value} =
// RUN: %{fail}
// REDEFINE: %{names} = isa, bin or fatbin
// REDEFINE: %{option} = cuda-pipeline=format
// REDEFINE: %{value} = ptx
// RUN: %{fail}

// RUN: bngrad-opt %s --bngrad-cpu-pipeline="fma=true bf16-conversion=host f16-conversion=host stop-after=import"
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="fma=false bf16-conversion=true stop-after=lower"
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="format=isa stop-after=apply"
// RUN: bngrad-opt %s --bngrad-to-linalg=stop-after=decompose

func.func @nothing() {
  return
}
