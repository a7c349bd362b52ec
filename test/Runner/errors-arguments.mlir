// Each wrong --arg gives one line that names the argument and the expected value; nothing runs.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{first} = bngrad-runner %s --entry=gradient --arg=random:1 --arg=random:2 --arg=random:3

// The runs below fail only for the stated reason.
// RUN: %{first} --arg=random:4
// RUN: bngrad-runner %s --entry=dynamic --arg=random:1@3x4x5

// Number of arguments.
// RUN: %{fails} "@gradient: expected 4 --arg, one per argument, got 0" bngrad-runner %s --entry=gradient
// RUN: %{fails} "@gradient: expected 4 --arg, one per argument, got 3" %{first}
// RUN: %{fails} "@gradient: expected 4 --arg, one per argument, got 5" %{first} --arg=random:4 --arg=random:5

// Shapes.
// RUN: %{fails} "argument 3 (random:4@5): expected shape [4], got [5]" %{first} --arg=random:4@5
// RUN: %{fails} "argument 3 (random:4@4x1): expected shape [4], got [4, 1]" %{first} --arg=random:4@4x1
// RUN: %{fails} "argument 3 (random:4@): expected shape [4], got []" %{first} --arg=random:4@
// RUN: %{fails} "argument 0 (random:1): expected @D0xD1x... for shape [?, 4, ?], got none" bngrad-runner %s --entry=dynamic --arg=random:1
// RUN: %{fails} "argument 0 (random:1@3x5x4): expected shape [?, 4, ?], got [3, 5, 4]" bngrad-runner %s --entry=dynamic --arg=random:1@3x5x4
// RUN: %{fails} "argument 0 (random:1@3x4): expected shape [?, 4, ?], got [3, 4]" bngrad-runner %s --entry=dynamic --arg=random:1@3x4

// Files.
// RUN: %{fails} "argument 3: %t.none.npy: cannot open: No such file or directory" %{first} --arg=%t.none.npy
// RUN: %{fails} "argument 3: %S: cannot open: Is a directory" %{first} --arg=%S
// RUN: %{fails} "argument 3: %s: expected an npy file, ..." %{first} --arg=%s

!d = tensor<3x4xf32>
!p = tensor<4xf32>
func.func @gradient(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0 : !d
}

func.func @dynamic(%a: tensor<?x4x?xf32>) -> tensor<?x4x?xf32> {
  return %a : tensor<?x4x?xf32>
}
