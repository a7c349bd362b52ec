// One line for each mistake in options of passes and of bngrad-opt: upstream adds a second one, `<unknown>:0: error: `,
// after a value that the parser of options has refused.

// DEFINE: %{option} =
// DEFINE: %{line} =
// DEFINE: %{refused} = not bngrad-opt %s %{option} 2>&1 | \
// DEFINE:   FileCheck %s --implicit-check-not={{.}} --match-full-lines "-DLINE=%{line}"
// CHECK: bngrad-opt: for the [[LINE]]

// REDEFINE: %{line} = --threads option: 'x' value invalid for long argument!
// REDEFINE: %{option} = --bngrad-group=threads=x
// RUN: %{refused}
// REDEFINE: %{line} = --fma option: 'maybe' is invalid value for boolean argument! Try 0 or 1
// REDEFINE: %{option} = --bngrad-group=fma=maybe
// RUN: %{refused}
// REDEFINE: %{option} = "--pass-pipeline=builtin.module(func.func(bngrad-group{fma=maybe}))"
// RUN: %{refused}

// REDEFINE: %{line} = --stop-after option: expected import, partition, decompose or fuse, got 'foo'
// REDEFINE: %{option} = "--pass-pipeline=builtin.module(bngrad-to-linalg{stop-after=foo})"
// RUN: %{refused}

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// RUN: %{fails} "<Pass-Options-Parser>: no such option nosuch" bngrad-opt %s --bngrad-group=nosuch=1
// RUN: %{fails} "<Pass-Options-Parser>: no such option nosuch" \
// RUN:   bngrad-opt %s "--pass-pipeline=builtin.module(func.func(bngrad-group{nosuch=1}))"
// RUN: %{fails} "MLIR Textual PassPipeline Parser:1:1: error: 'nosuch' does ... refer to a registered pass or pass pipeline" \
// RUN:   bngrad-opt %s "--pass-pipeline=builtin.module(nosuch)"
// RUN: %{fails} "cannot open output file '%t/none/out.mlir': No such file or directory" bngrad-opt %s -o %t/none/out.mlir

// RUN: %{fails} "expected 'bngrad-cpu-pipeline' to run on 'builtin.module', got 'gpu.module'" \
// RUN:   bngrad-opt %s "--pass-pipeline=builtin.module(gpu.module(bngrad-cpu-pipeline))"
// RUN: %{fails} "expected 'bngrad-to-linalg' to run on 'builtin.module', got 'func.func'" \
// RUN:   bngrad-opt %s "--pass-pipeline=builtin.module(func.func(bngrad-to-linalg))"
