// Each wrong option gives one line that names it, before anything is compiled or runs; several give several lines.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{run} = bngrad-runner %s --arg=random:1

// RUN: %{run}

// RUN: %{fails} "unknown argument '--nope'" %{run} --nope
// RUN: %{fails} "unknown argument '-x'" %{run} -x
// RUN: %{fails} "unknown argument '--checks', did you mean '--check'?" %{run} --checks
// RUN: %{fails} "unknown argument '--check=yes'" %{run} --check=yes
// RUN: %{fails} "expected one file, got '%s' and '%t'" %{run} %t
// RUN: %{fails} "expected --entry to be a function, got ''" %{run} --entry=
// RUN: %{fails} "--schedule: ...: expected vector_bits to be a power of 2 in [64, 2048], got 4096" %{run} --schedule='#bngrad.schedule<rows, vector_bits = 4096>'
// RUN: %{fails} "expected a file, got none; - is standard input" bngrad-runner --check

// DEFINE: %{option} =
// DEFINE: %{value} =
// DEFINE: %{no-count} = %{fails} "expected %{option} to be a whole number from 1 to ..., got '%{value}'" %{run} %{option}=%{value}
// REDEFINE: %{option} = --threads
// REDEFINE: %{value} = 0
// RUN: %{no-count}
// REDEFINE: %{value} = -1
// RUN: %{no-count}
// REDEFINE: %{value} = 1.5
// RUN: %{no-count}
// REDEFINE: %{value} = many
// RUN: %{no-count}
// REDEFINE: %{value} = 99999999999
// RUN: %{no-count}
// REDEFINE: %{value} =
// RUN: %{no-count}
// REDEFINE: %{option} = --benchmark
// RUN: %{no-count}
// REDEFINE: %{value} = 0
// RUN: %{no-count}
// REDEFINE: %{value} = often
// RUN: %{no-count}
// RUN: %{fails} "--threads: missing argument" %{run} --threads
// RUN: %{fails} "expected --threads with --target=cpu alone, got --target=cuda-emulator" %{run} --threads=2 --target=cuda-emulator
// RUN: %{fails} "--target: missing argument" bngrad-runner --target
// RUN: %{fails} "argument 0: expected PATH.npy or random:..., got ''" bngrad-runner %s --entry=identity --arg=

// RUN: %{fails} "expected --target to be ..., got 'gpu'" %{run} --target=gpu
// REDEFINE: %{value} = loops
// DEFINE: %{reason} = : expected attribute value
// DEFINE: %{no-schedule} = %{fails} "--schedule: expected an attribute such as #bngrad.schedule<loops>, got '%{value}'%{reason}" %{run} --schedule='%{value}'
// RUN: %{no-schedule}
// REDEFINE: %{value} =
// RUN: %{no-schedule}
// REDEFINE: %{value} = #bngrad.schedule<nope>
// REDEFINE: %{reason} = : expected a kind (loops, ...), got 'nope'
// RUN: %{no-schedule}
// REDEFINE: %{value} = #bngrad.statistics<batch>
// REDEFINE: %{reason} =
// RUN: %{no-schedule}
// RUN: %{run} --schedule='#bngrad.schedule<loops>'

// RUN: %{fails} "@identity: expected at most 1 --result, got 2" %{run} --result=%t.npy --result=-
// RUN: %{fails} "%t.none/result.npy: cannot write: No such file or directory" %{run} --result=%t.none/result.npy
// RUN: %{fails} "%S: cannot write: Is a directory" %{run} --result=%S
// RUN: %{fails} "%s/result.npy: cannot write: Not a directory" %{run} --result=%s/result.npy
// RUN: %{fails} "expected --result to be PATH.npy or -, got ''" %{run} --result=
// RUN: %{fails} "/dev/full: cannot write: No space left on device" %{run} --result=/dev/full

// Each result has a separate file.
// RUN: rm -rf %t.d && mkdir %t.d
// RUN: %{fails} "%t.npy: cannot write: it is --result number 0, too" \
// RUN:   bngrad-runner %s --entry=add --arg=random:1 --arg=random:1 --result=%t.npy --result=%t.npy
// RUN: %{fails} "%t.d/../%basename_t.tmp.d/same.npy: cannot write: it is --result number 0, too" \
// RUN:   bngrad-runner %s --entry=add --arg=random:1 --arg=random:1 --result=%t.d/same.npy --result=%t.d/../%basename_t.tmp.d/same.npy
// RUN: rm -f %t.program && cat %s > %t.program && ln -sf %t.program %t.link
// RUN: %{fails} "%t.link: cannot write: it is the program" bngrad-runner %t.program --arg=random:1 --result=%t.link --entry=identity
// RUN: %{run} --result=%t.npy
// RUN: %{fails} "%t.npy: cannot write: it is argument 0" bngrad-runner %s --entry=identity --arg=%t.npy --result=%t.npy

// No file is changed, writable or not.
// RUN: rm -rf %t && mkdir %t
// RUN: not bngrad-runner %s --entry=add --arg=random:1 --arg=random:1 --result=%t/a.npy --result=%t/none/b.npy
// RUN: ls %t | count 0

// All errors of the command line at once; first those that do not need the file.
// RUN: not bngrad-runner --nope --target=gpu --threads=0 --benchmark=0 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: unknown argument '--nope'
// SYNTAX-NEXT: error: expected a file
// SYNTAX-NEXT: error: expected --target
// SYNTAX-NEXT: error: expected --benchmark
// SYNTAX-NEXT: error: expected --threads{{.*}}
// SYNTAX-NOT: {{.}}
// RUN: not bngrad-runner %s --entry=add --arg=random: --arg=%t/none.npy --result=%t --result=%t/none/b.npy --result=- --schedule=no 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FACTS
// FACTS: error: --schedule: expected
// FACTS-NEXT: error: @add: expected at most 2 --result, got 3
// FACTS-NEXT: cannot write: Is a directory
// FACTS-NEXT: cannot write: No such file or directory
// FACTS-NEXT: error: argument 0 (random:)
// FACTS-NEXT: error: argument 1: {{.*}}none.npy: cannot open{{.*}}
// FACTS-NOT: {{.}}

// --help describes the whole grammar, and the types that cannot be random.
// RUN: bngrad-runner --help | FileCheck %s --check-prefix=HELP
// HELP: USAGE: bngrad-runner FILE|- [options]
// HELP-DAG: --arg=SPEC
// HELP-DAG: --schedule=#bngrad.schedule<...>
// HELP: SPEC
// HELP-NEXT: PATH.npy
// HELP-NEXT: random:SEED[:LO:HI][@D0xD1x...]
// HELP-DAG: SEED {{.+}}
// HELP-DAG: LO:HI {{.+}}
// HELP-DAG: @D0xD1x... {{.+}}
// HELP: An i64 is never random: it needs PATH.npy

func.func @identity(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  return %a : tensor<3x4xf32>
}

func.func private @add(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = arith.addf %a, %b : tensor<3x4xf32>
  return %0, %a : tensor<3x4xf32>, tensor<3x4xf32>
}
