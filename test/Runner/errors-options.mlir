// Each wrong option is one line that names it, before anything runs.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{run} = bngrad-runner %s --arg=random:1

// RUN: %{run}

// RUN: %{fails} "unknown argument '--nope'" %{run} --nope
// RUN: %{fails} "unknown argument '-x'" %{run} -x
// RUN: %{fails} "unknown argument '--checks', did you mean '--check'?" %{run} --checks
// RUN: %{fails} "unknown argument '--check=yes'" %{run} --check=yes
// RUN: %{fails} "expected one file, got '%s' and '%t'" %{run} %t

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

// RUN: %{fails} "expected --target to be ..., got 'gpu'" %{run} --target=gpu
// RUN: %{fails} "...schedule...got 'loops'" %{run} --schedule=loops
// RUN: %{fails} "...schedule...got '#bngrad.schedule<nope>'" %{run} --schedule='#bngrad.schedule<nope>'
// RUN: %{fails} "...schedule...got '#bngrad.statistics<batch>'" %{run} --schedule='#bngrad.statistics<batch>'
// RUN: %{run} --schedule='#bngrad.schedule<loops>'

// RUN: %{fails} "@identity: expected at most 1 --result, got 2" %{run} --result=%t.npy --result=-
// RUN: %{fails} "%t.none/result.npy: cannot write: No such file or directory" %{run} --result=%t.none/result.npy
// RUN: %{fails} "%S: cannot write: Is a directory" %{run} --result=%S
// RUN: %{fails} "/dev/full: cannot write: No space left on device" %{run} --result=/dev/full

func.func @identity(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  return %a : tensor<3x4xf32>
}
