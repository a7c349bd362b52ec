// The smallest and largest value of each field of a schedule, and values outside of the range.

// RUN: bngrad-opt %s --split-input-file --verify-diagnostics | bngrad-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func private @limits()
// CHECK-SAME:    test.least = #bngrad.schedule<rows, vector_bits = 64, columns = 1, row_blocks = 1>
// CHECK-SAME:    test.most = #bngrad.schedule<rows, threads = 4096, vector_bits = 2048, streaming_bytes = 9223372036854775807, columns = 1048576, row_blocks = 1048576>
func.func private @limits() attributes {
  test.least = #bngrad.schedule<rows, threads = 1, vector_bits = 64, streaming_bytes = 0, columns = 1, row_blocks = 1>,
  test.most = #bngrad.schedule<rows, threads = 4096, vector_bits = 2048, streaming_bytes = 9223372036854775807, columns = 1048576, row_blocks = 1048576>}

// CHECK-LABEL: func private @limits_of_a_gpu()
// CHECK-SAME:    test.least = #bngrad.schedule<two_pass, block_threads = 32, access_bits = 64, block_accesses = 1024, sum_blocks = 16>
// CHECK-SAME:    test.most = #bngrad.schedule<one_pass, block_threads = 1024, block_channels = 1024, cluster_blocks = 16>
func.func private @limits_of_a_gpu() attributes {
  test.least = #bngrad.schedule<two_pass, block_threads = 32, access_bits = 64, block_accesses = 1024, sum_blocks = 16>,
  test.most = #bngrad.schedule<one_pass, block_threads = 1024, block_channels = 1024, cluster_blocks = 16>}

// -----

// expected-error @below {{expected threads to be in [0, 4096], got -1}}
#schedule = #bngrad.schedule<rows, threads = -1>

// -----

// expected-error @below {{expected threads to be in [0, 4096], got 4097}}
#schedule = #bngrad.schedule<rows, threads = 4097>

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

// expected-error @below {{expected block_threads to be a multiple of 32 in [32, 1024], got 48}}
#schedule = #bngrad.schedule<two_pass, block_threads = 48, block_accesses = 1024, sum_blocks = 16>

// -----

// expected-error @below {{expected block_threads to be a multiple of 32 in [32, 1024], got 1056}}
#schedule = #bngrad.schedule<one_pass, block_threads = 1056, block_channels = 1024>

// -----

// expected-error @below {{expected access_bits to be 64 or 128, got 256}}
#schedule = #bngrad.schedule<one_pass, block_threads = 32, access_bits = 256, block_channels = 1024>

// -----

// expected-error @below {{expected access_bits to be 64 or 128, got 256}}
#schedule = #bngrad.schedule<two_pass, block_threads = 32, access_bits = 256, block_accesses = 1024, sum_blocks = 16>

// -----

// expected-error @below {{expected streaming_bytes to be at least 0, got -1}}
#schedule = #bngrad.schedule<rows, streaming_bytes = -1>

// -----

// expected-error @below {{expected cluster_blocks to be 1, 2, 4, 8 or 16, got 0}}
#schedule = #bngrad.schedule<one_pass, block_threads = 32, block_channels = 1024, cluster_blocks = 0>

// -----

// expected-error @below {{expected cluster_blocks to be 1, 2, 4, 8 or 16, got 3}}
#schedule = #bngrad.schedule<one_pass, block_threads = 32, block_channels = 1024, cluster_blocks = 3>

// -----

// expected-error @below {{expected cluster_blocks to be 1, 2, 4, 8 or 16, got 32}}
#schedule = #bngrad.schedule<one_pass, block_threads = 32, block_channels = 1024, cluster_blocks = 32>

// -----

// expected-error @below {{expected cluster_blocks to be 1, 2, 4, 8 or 16, got -9223372036854775808}}
#schedule = #bngrad.schedule<one_pass, block_threads = 32, block_channels = 1024, cluster_blocks = -9223372036854775808>

// -----

// expected-error @below {{expected columns to be in [1, 1048576], got 0}}
#schedule = #bngrad.schedule<rows, columns = 0>

// -----

// expected-error @below {{expected columns to be in [1, 1048576], got 1048577}}
#schedule = #bngrad.schedule<rows, columns = 1048577>

// -----

// expected-error @below {{expected row_blocks to be in [1, 1048576], got 0}}
#schedule = #bngrad.schedule<rows, row_blocks = 0>

// -----

// expected-error @below {{expected row_blocks to be in [1, 1048576], got 1048577}}
#schedule = #bngrad.schedule<rows, row_blocks = 1048577>

// -----

// Each kind has its own parameters.
// expected-error-re @below {{expected a kind (loops, {{.*}}, one_pass), got 'fast'}}
#schedule = #bngrad.schedule<fast>

// -----

// expected-error-re @below {{expected a kind (loops, {{.*}}, one_pass)}}
#schedule = #bngrad.schedule<3>

// -----

// expected-error @below {{expected no parameters of 'loops', got 'threads'}}
#schedule = #bngrad.schedule<loops, threads = 2>

// -----

// expected-error @below {{expected no parameters of 'loops', got 'fma'}}
#schedule = #bngrad.schedule<loops, fma = true>

// -----

// expected-error @below {{expected a parameter of 'rows' (threads, vector_bits, streaming_bytes, columns, row_blocks, fma), got 'sum_blocks'}}
#schedule = #bngrad.schedule<rows, sum_blocks = 2>

// -----

// expected-error @below {{expected a parameter of 'two_pass' (block_threads, access_bits, block_accesses, sum_blocks, fma), got 'cluster_blocks'}}
#schedule = #bngrad.schedule<two_pass, cluster_blocks = 2>

// -----

// expected-error @below {{expected parameter 'threads' once, got it twice}}
#schedule = #bngrad.schedule<rows, threads = 2, threads = 3>

// -----

// expected-error @below {{expected 'fma' to be true or false, got 1}}
#schedule = #bngrad.schedule<rows, fma = 1>

// -----

// expected-error @below {{expected 'fma' to be true or false, got 'yes'}}
#schedule = #bngrad.schedule<rows, fma = yes>

// -----

// expected-error @below {{expected 'streaming_bytes' to be an integer of 64 bits, got 'false'}}
#schedule = #bngrad.schedule<rows, streaming_bytes = false>

// -----

// expected-error @below {{expected 'threads' to be an integer of 64 bits, got 99999999999999999999999}}
#schedule = #bngrad.schedule<rows, threads = 99999999999999999999999>

// -----

// expected-error @below {{expected 'threads' to be an integer of 64 bits}}
#schedule = #bngrad.schedule<rows, threads = >

// -----

// Names that earlier versions used.
// expected-error @below {{expected 'row_blocks', the new name of 'blocks' of 'rows'}}
#schedule = #bngrad.schedule<rows, blocks = 2>

// -----

// expected-error @below {{expected 'block_accesses', the new name of 'columns' of 'two_pass'}}
#schedule = #bngrad.schedule<two_pass, columns = 32>

// -----

// expected-error @below {{expected 'cluster_blocks', the new name of 'cluster' of 'one_pass'}}
#schedule = #bngrad.schedule<one_pass, cluster = 2>

// -----

// expected-error @below {{'func.func' op expected attribute 'bngrad.schedule' to be a #bngrad.schedule, got "rows"}}
func.func private @no_schedule() attributes {bngrad.schedule = "rows"}

// -----

// expected-error @below {{'func.func' op expected attribute 'bngrad.schedule' on a linalg.generic only}}
func.func private @misplaced_schedule() attributes {bngrad.schedule = #bngrad.schedule<rows>}
