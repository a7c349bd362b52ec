// The smallest and largest value of each field of a schedule, and values outside of the range.

// RUN: bngrad-opt %s --split-input-file --verify-diagnostics | bngrad-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func private @limits()
// CHECK-SAME:    test.least = #bngrad.schedule<rows, vector_bits = 64, columns = 1, blocks = 1>
// CHECK-SAME:    test.most = #bngrad.schedule<rows, threads = 1048576, vector_bits = 2048, streaming_bytes = 9223372036854775807, columns = 1048576, blocks = 1048576>
func.func private @limits() attributes {
  test.least = #bngrad.schedule<rows, threads = 1, vector_bits = 64, streaming_bytes = 0, columns = 1, blocks = 1>,
  test.most = #bngrad.schedule<rows, threads = 1048576, vector_bits = 2048, streaming_bytes = 9223372036854775807, columns = 1048576, blocks = 1048576>}

// CHECK-LABEL: func private @limits_of_a_gpu()
// CHECK-SAME:    test.least = #bngrad.schedule<two_pass, threads = 32, vector_bits = 64>
// CHECK-SAME:    test.most = #bngrad.schedule<one_pass, threads = 1024, vector_bits = 128, cluster = 8>
func.func private @limits_of_a_gpu() attributes {
  test.least = #bngrad.schedule<two_pass, threads = 32, vector_bits = 64, cluster = 1>,
  test.most = #bngrad.schedule<one_pass, threads = 1024, vector_bits = 128, cluster = 8>}

// -----

// expected-error @below {{expected threads to be in [1, 1048576], got 0}}
#schedule = #bngrad.schedule<rows, threads = 0>

// -----

// expected-error @below {{expected threads to be in [1, 1048576], got 1048577}}
#schedule = #bngrad.schedule<rows, threads = 1048577>

// -----

// expected-error @below {{expected vector_bits to be a power of 2 in [64, 2048], got 32}}
#schedule = #bngrad.schedule<rows, vector_bits = 32>

// -----

// expected-error @below {{expected vector_bits to be a power of 2 in [64, 2048], got 131072}}
#schedule = #bngrad.schedule<rows, vector_bits = 131072>

// -----

// expected-error @below {{expected vector_bits to be a power of 2 in [64, 2048], got 96}}
#schedule = #bngrad.schedule<rows, vector_bits = 96>

// -----

// A power of two as an unsigned number.
// expected-error @below {{expected vector_bits to be a power of 2 in [64, 2048], got -9223372036854775808}}
#schedule = #bngrad.schedule<rows, vector_bits = -9223372036854775808>

// -----

// expected-error @below {{expected threads of a block to be a multiple of 32, at most 1024, got 48}}
#schedule = #bngrad.schedule<two_pass, threads = 48, vector_bits = 128>

// -----

// expected-error @below {{expected threads of a block to be a multiple of 32, at most 1024, got 1056}}
#schedule = #bngrad.schedule<one_pass, threads = 1056, vector_bits = 128>

// -----

// expected-error @below {{expected vector_bits of a GPU to be 64 or 128, got 256}}
#schedule = #bngrad.schedule<one_pass, threads = 32, vector_bits = 256>

// -----

// expected-error @below {{expected vector_bits of a GPU to be 64 or 128, got 256}}
#schedule = #bngrad.schedule<two_pass, threads = 32, vector_bits = 256>

// -----

// expected-error @below {{expected streaming_bytes to be at least 0, got -1}}
#schedule = #bngrad.schedule<rows, streaming_bytes = -1>

// -----

// expected-error @below {{expected cluster to be 1, 2, 4 or 8, got 0}}
#schedule = #bngrad.schedule<one_pass, threads = 32, vector_bits = 128, cluster = 0>

// -----

// expected-error @below {{expected cluster to be 1, 2, 4 or 8, got 3}}
#schedule = #bngrad.schedule<one_pass, threads = 32, vector_bits = 128, cluster = 3>

// -----

// expected-error @below {{expected cluster to be 1, 2, 4 or 8, got 16}}
#schedule = #bngrad.schedule<one_pass, threads = 32, vector_bits = 128, cluster = 16>

// -----

// expected-error @below {{expected cluster to be 1, 2, 4 or 8, got -9223372036854775808}}
#schedule = #bngrad.schedule<one_pass, threads = 32, vector_bits = 128, cluster = -9223372036854775808>

// -----

// expected-error @below {{expected columns to be in [1, 1048576], got 0}}
#schedule = #bngrad.schedule<rows, columns = 0>

// -----

// expected-error @below {{expected columns to be in [1, 1048576], got 1048577}}
#schedule = #bngrad.schedule<rows, columns = 1048577>

// -----

// expected-error @below {{expected blocks to be in [1, 1048576], got 0}}
#schedule = #bngrad.schedule<rows, blocks = 0>

// -----

// expected-error @below {{expected blocks to be in [1, 1048576], got 1048577}}
#schedule = #bngrad.schedule<rows, blocks = 1048577>
