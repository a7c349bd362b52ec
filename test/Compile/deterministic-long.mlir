// As deterministic.mlir, with every output of all functions.

// REQUIRES: long
// RUN: rm -rf %t && mkdir -p %t/a %t/b
// DEFINE: %{source} = %S/Inputs/gradients.mlir
// DEFINE: %{kind} =
// DEFINE: %{options} = --threads=4 --mcpu=x86-64-v3
// DEFINE: %{same} = bngrad-compile %{source} -o %t/a/x.%{kind} --header=%t/a/x.h %{options} && \
// DEFINE:   bngrad-compile - -o %t/b/x.%{kind} --header=%t/b/x.h %{options} < %{source} && \
// DEFINE:   cmp %t/a/x.%{kind} %t/b/x.%{kind} && cmp %t/a/x.h %t/b/x.h
// REDEFINE: %{kind} = o
// RUN: %{same}
// REDEFINE: %{kind} = s
// RUN: %{same}
// REDEFINE: %{kind} = ll
// RUN: %{same}
// REDEFINE: %{kind} = mlir
// RUN: %{same}

// REDEFINE: %{options} = --target=cuda --chip=sm_80,sm_90
// REDEFINE: %{kind} = so
// RUN: %{same}
// REDEFINE: %{kind} = mlir
// RUN: %{same}
