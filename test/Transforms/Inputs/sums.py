"""Prints a reduction of a matrix of bf16 with as many sums of f32 as the argument says."""

import sys

numbers = range(int(sys.argv[1]))


def join(text):
    return ", ".join(text.format(i) for i in numbers)


print("#data = affine_map<(n, c) -> (n, c)>\n#feature = affine_map<(n, c) -> (c)>")
print(f"func.func @sums(%x: memref<64x32xbf16>, {join('%s{}: memref<32xf32>')}) {{")
print(f"  linalg.generic {{indexing_maps = [#data, {join('#feature')}], iterator_types = [\"reduction\", \"parallel\"]}}")
print(f"      ins(%x : memref<64x32xbf16>) outs({join('%s{}')} : {join('memref<32xf32>')})")
print("      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024,")
print("               sum_blocks = 16>} {")
print(f"  ^bb0(%e: bf16, {join('%a{}: f32')}):\n    %w = arith.extf %e : bf16 to f32")
for i in numbers:
    print(f"    %b{i} = arith.addf %a{i}, %w fastmath<reassoc> : f32")
print(f"    linalg.yield {join('%b{}')} : {join('f32')}\n  }}\n  return\n}}")
