// Each npy file that cannot be an argument gives one line that names the argument, the file and the error.

// REQUIRES: numpy
// RUN: %python %S/../Inputs/bad_npy.py %t
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{run} = bngrad-runner %s

// RUN: %{run} --arg=%t/good.npy --result=%t/result.npy

// The elements of files in Fortran order or with big-endian numbers are put in order.
// RUN: %{run} --arg=%t/fortran.npy --result=%t/from_fortran.npy
// RUN: cmp %t/from_fortran.npy %t/result.npy
// RUN: %{run} --arg=%t/big_endian.npy --result=%t/from_big_endian.npy
// RUN: cmp %t/from_big_endian.npy %t/result.npy

// RUN: %{fails} "argument 0 (%t/f64.npy): expected element type f32, got f64" %{run} --arg=%t/f64.npy
// RUN: %{fails} "argument 0 (%t/bf16.npy): expected element type f32, got bf16" %{run} --arg=%t/bf16.npy
// RUN: %{fails} "argument 0 (%t/shape.npy): expected shape [3, 4], got [4, 3]" %{run} --arg=%t/shape.npy
// RUN: %{fails} "argument 0 (%t/rank.npy): expected shape [3, 4], got [12]" %{run} --arg=%t/rank.npy
// RUN: %{fails} "argument 0 (%t/rank_0.npy): expected shape [3, 4], got []" %{run} --arg=%t/rank_0.npy

// RUN: %{fails} "argument 0: %t/complex.npy: expected dtype ..., got '<c8'" %{run} --arg=%t/complex.npy
// RUN: %{fails} "argument 0 (%t/int32.npy): expected element type f32, got i32" %{run} --arg=%t/int32.npy
// RUN: %{fails} "argument 0: %t/string.npy: expected dtype ..., got '<U4'" %{run} --arg=%t/string.npy
// RUN: %{fails} "argument 0: %t/structured.npy: expected dtype ..., got [('a', '<f4'), ('b', '<i4')]" %{run} --arg=%t/structured.npy

// RUN: %{fails} "argument 0: %t/truncated.npy: expected 48 bytes of data for shape (3, 4) of f32, got 47" %{run} --arg=%t/truncated.npy
// RUN: %{fails} "argument 0: %t/too_long.npy: expected 48 bytes of data for shape (3, 4) of f32, got 49" %{run} --arg=%t/too_long.npy
// RUN: %{fails} "argument 0: %t/header_only.npy: expected a header of 118 bytes, got 54" %{run} --arg=%t/header_only.npy
// RUN: %{fails} "argument 0: %t/empty.npy: expected an npy file of at least 10 bytes, got 0" %{run} --arg=%t/empty.npy
// RUN: %{fails} "argument 0: %t/text.npy: expected an npy file, ..., got '..." %{run} --arg=%t/text.npy
// RUN: %{fails} "argument 0: %t/version_4.npy: expected npy version 1.0, 2.0 or 3.0, got 4.0" %{run} --arg=%t/version_4.npy

func.func @identity(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  return %a : tensor<3x4xf32>
}
