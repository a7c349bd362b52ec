"""conversions.py DIR BNGRAD-COMPILE: f16 and bf16 on baseline x86-64, against numpy.

Arithmetic is in f16 and bf16 themselves, so that LLVM emits the conversions: x + 0, which is exact, and products
that round, of all signs and sizes, including subnormals, infinities and NaN.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np

N = 65536
SOURCE = """
func.func @sum_{t}(%a: tensor<65536x{t}>, %b: tensor<65536x{t}>) -> tensor<65536x{t}> {{
  %0 = arith.addf %a, %b : tensor<65536x{t}>
  return %0 : tensor<65536x{t}>
}}
func.func @product_{t}(%a: tensor<65536x{t}>, %b: tensor<65536x{t}>) -> tensor<65536x{t}> {{
  %0 = arith.mulf %a, %b : tensor<65536x{t}>
  return %0 : tensor<65536x{t}>
}}
func.func @widened_{t}(%a: tensor<65536x{t}>) -> tensor<65536xf32> {{
  %0 = arith.extf %a : tensor<65536x{t}> to tensor<65536xf32>
  return %0 : tensor<65536xf32>
}}
func.func @narrowed_{t}(%a: tensor<65536xf64>) -> tensor<65536x{t}> {{
  %0 = arith.truncf %a : tensor<65536xf64> to tensor<65536x{t}>
  return %0 : tensor<65536x{t}>
}}
"""


def to_bf16(values):
    """float64 to the bits of bf16, rounded once: through an f32 that is rounded to odd."""
    with np.errstate(all="ignore"):
        nearest = values.astype(np.float32)
        inexact = np.isfinite(values) & (nearest.astype(np.float64) != values)
        away = inexact & (np.abs(nearest.astype(np.float64)) > np.abs(values))
        bits = nearest.view(np.uint32).astype(np.uint64) - away
        bits = np.where(inexact, bits | 1, bits)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bits(kind, bits):
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_bits(kind, values):
    with np.errstate(all="ignore"):
        return values.astype(np.float16).view(np.uint16) if kind == "f16" else to_bf16(values)


def main():
    directory, compiler = sys.argv[1:]
    source, library = (os.path.join(directory, "conversions" + e) for e in (".mlir", ".so"))
    with open(source, "w") as file:
        file.write(SOURCE.format(t="f16") + SOURCE.format(t="bf16"))
    subprocess.run([compiler, source, "-o", library, "--mcpu=x86-64"], check=True)
    functions = ctypes.CDLL(library)
    random = np.random.default_rng(1)
    differ = count = 0
    every = np.arange(N, dtype=np.uint16)
    other = random.permutation(every)
    for kind in ("f16", "bf16"):
        a, b = from_bits(kind, every), from_bits(kind, other)

        def call(name, result, *arguments):
            status = functions[f"{name}_{kind}"](*(ctypes.c_void_p(x.ctypes.data) for x in (*arguments, result)))
            assert status == 0, status
            return result

        def compare(name, got, expected):
            nonlocal differ, count
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            same &= np.isnan(got) | (np.signbit(got) == np.signbit(expected))
            differ += np.count_nonzero(~same)
            count += same.size
            for i in np.flatnonzero(~same)[:3]:
                print(f"{name} {kind}: {i}: expected {expected[i]}, got {got[i]}")

        def bits():
            return np.zeros(N, np.uint16)

        with np.errstate(all="ignore"):
            # Sums and products of these are exact in f64, or round to the same number; bf16 goes through f32, as in
            # LLVM.
            total = (a.astype(np.float32) + b.astype(np.float32)).astype(np.float64)
            product = (a.astype(np.float32) * b.astype(np.float32)).astype(np.float64)
        compare("sum", from_bits(kind, call("sum", bits(), every, other)), from_bits(kind, to_bits(kind, total)))
        compare("product", from_bits(kind, call("product", bits(), every, other)),
                from_bits(kind, to_bits(kind, product)))
        compare("widened", call("widened", np.zeros(N, np.float32), every).astype(np.float64), a)
        # Around ties: the mean of two neighbours, and numbers close to it.
        with np.errstate(all="ignore"):
            middle = (a + from_bits(kind, every + np.uint16(1))) / 2
            values = middle * (1 + random.integers(-1, 2, N) * 2.0**-40)
        compare("narrowed", from_bits(kind, call("narrowed", bits(), values)), from_bits(kind, to_bits(kind, values)))
    print(f"{differ} of {count} conversions differ")


if __name__ == "__main__":
    main()
