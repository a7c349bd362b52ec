"""Compares floating-point instructions with exact rational arithmetic.

Each instruction runs on operands that include every kind of special value and
ties; the expected result is the exact one, rounded once.
"""

import argparse
import math
import os
import random
import struct
import subprocess
import tempfile
from fractions import Fraction


class Format:
    def __init__(self, name, exponent_bits, fraction_bits):
        self.name = name
        self.exponent_bits = exponent_bits
        self.fraction_bits = fraction_bits
        self.bits = 1 + exponent_bits + fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        self.sign = 1 << (self.bits - 1)
        self.register = {16: "b16", 32: "b32", 64: "b64"}[self.bits]

    def decode(self, bits):
        """A Fraction, or a float for NaN and infinity."""
        negative = bits & self.sign
        magnitude = bits & (self.sign - 1)
        exponent = magnitude >> self.fraction_bits
        fraction = magnitude & ((1 << self.fraction_bits) - 1)
        if magnitude > self.infinity:
            return math.nan
        if magnitude == self.infinity:
            return -math.inf if negative else math.inf
        if exponent:
            fraction |= 1 << self.fraction_bits
        scale = max(exponent, 1) - self.bias - self.fraction_bits
        value = Fraction(fraction) * Fraction(2) ** scale
        return -value if negative else value

    def encode(self, value, mode, negative_zero=False):
        """The bits of a Fraction, rounded."""
        if value == 0:
            return self.sign if negative_zero else 0
        negative = value < 0
        magnitude = abs(value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if Fraction(2) ** exponent > magnitude:
            exponent -= 1
        exponent = max(exponent, 1 - self.bias)
        unit = Fraction(2) ** (exponent - self.fraction_bits)
        count, rest = divmod(magnitude, unit)
        count = int(count)
        up = {
            "rn": rest * 2 > unit or (rest * 2 == unit and count & 1),
            "rna": rest * 2 >= unit,
            "rz": False,
            "rm": negative and rest != 0,
            "rp": not negative and rest != 0,
        }[mode]
        count += bool(up)
        bits = count
        if count >= 1 << self.fraction_bits:
            bits += (exponent + self.bias - 1) << self.fraction_bits
        if bits >= self.infinity:
            away = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
            bits = self.infinity if away else self.infinity - 1
        return bits | (self.sign if negative else 0)

    def is_nan(self, bits):
        return bits & (self.sign - 1) > self.infinity


F16 = Format("f16", 5, 10)
BF16 = Format("bf16", 8, 7)
F32 = Format("f32", 8, 23)
F64 = Format("f64", 11, 52)
TF32 = Format("f32", 8, 23)


def operands(format, count, rng):
    special = [0, 1, format.infinity - 1, format.infinity, format.infinity + 1,
               1 << format.fraction_bits, (1 << format.fraction_bits) - 1,
               format.bias << format.fraction_bits]
    values = [s | sign for s in special for sign in (0, format.sign)]
    while len(values) < count:
        kind = rng.randrange(3)
        bits = rng.getrandbits(format.bits)
        if kind == 1:  # near one
            bits = (bits & ~format.infinity) | (
                (format.bias + rng.randrange(-3, 3)) << format.fraction_bits)
        elif kind == 2:  # few bits set: ties
            bits &= ~((1 << (format.fraction_bits * 2 // 3)) - 1)
        values.append(bits)
    rng.shuffle(values)
    return values


def ties(source, target, count, rng):
    """Values of `source` halfway between two of `target`, and their neighbours."""
    values = []
    for _ in range(count):
        low = rng.getrandbits(target.bits) & ~target.sign
        if low + 1 >= target.infinity:
            continue
        middle = (target.decode(low) + target.decode(low + 1)) / 2
        bits = source.encode(middle, "rn")
        for step in (-1, 0, 1):
            if 0 <= bits + step < source.infinity:
                values += [bits + step, (bits + step) | source.sign]
    return values


class Runner:
    def __init__(self, tool, keep):
        self.tool = tool
        self.folder = keep

    def run(self, instruction, sources, dest_bits):
        """Runs `instruction` for each tuple of operands; returns the results.
        `sources` is a list of (bits, values)."""
        count = len(sources[0][1])
        register = {16: "%h", 32: "%r", 64: "%d"}
        body, arguments = [], []
        for i, (bits, values) in enumerate(sources):
            path = os.path.join(self.folder, f"in{i}.bin")
            code = {16: "H", 32: "I", 64: "Q"}[bits]
            with open(path, "wb") as f:
                f.write(struct.pack(f"<{count}{code}", *values))
            arguments.append(f"--arg=buffer:b{bits}:{count}:@{path}")
            body += [
                f"ld.param.u64 %d10, [p{i}];",
                f"mad.wide.u32 %d11, %r10, {bits // 8}, %d10;",
                f"ld.global.b{bits} {register[bits]}{i}, [%d11];",
            ]
        names = {f"${i}": f"{register[bits]}{i}"
                 for i, (bits, _) in enumerate(sources)}
        text = instruction.replace("$d", f"{register[dest_bits]}9")
        for name, value in names.items():
            text = text.replace(name, value)
        last = len(sources)
        params = ", ".join(f".param .u64 p{i}" for i in range(last + 1))
        ptx = "\n".join([
            ".version 8.6", ".target sm_100", ".address_size 64",
            f".visible .entry k({params})", "{", ".reg .b16 %h<12>;",
            ".reg .b32 %r<12>;", ".reg .b64 %d<12>;", ".reg .pred %p<2>;",
            "mov.u32 %r10, %ctaid.x;", "mov.u32 %r11, %tid.x;",
            "mad.lo.u32 %r10, %r10, 256, %r11;",
            f"setp.ge.u32 %p1, %r10, {count};", "@%p1 ret;", *body, text,
            f"ld.param.u64 %d10, [p{last}];",
            f"mad.wide.u32 %d11, %r10, {dest_bits // 8}, %d10;",
            f"st.global.b{dest_bits} [%d11], {register[dest_bits]}9;", "ret;",
            "}", ""])
        path = os.path.join(self.folder, "k.ptx")
        with open(path, "w") as f:
            f.write(ptx)
        result = os.path.join(self.folder, "out.bin")
        subprocess.run(
            [self.tool, path, "--kernel=k", f"--grid={(count + 255) // 256}",
             "--block=256", *arguments,
             f"--arg=buffer:b{dest_bits}:{count}:uninit",
             f"--dump={last}:{result}"], check=True)
        code = {16: "H", 32: "I", 64: "Q"}[dest_bits]
        with open(result, "rb") as f:
            return struct.unpack(f"<{count}{code}", f.read())


def rounded(exact, format, mode, negative_zero):
    if isinstance(exact, float):
        if math.isnan(exact):
            return None
        return format.infinity | (format.sign if exact < 0 else 0)
    return format.encode(exact, mode, negative_zero)


def compare(name, format, got, expected, inputs):
    for g, e, i in zip(got, expected, inputs):
        fine = format.is_nan(g) if e is None else g == e
        if not fine:
            what = "NaN" if e is None else hex(e)
            raise SystemExit(f"{name} of {[hex(x) for x in i]}: expected "
                             f"{what}, got {hex(g)}")
    print(f"{name}: {len(got)} results")


def is_negative_zero(format, bits):
    return bits == format.sign


def exact_sum(a, b):
    try:
        return a + b
    except TypeError:
        return float(a) + float(b)


def special(x):
    return isinstance(x, float)


def exact_product(a, b):
    if special(a) or special(b):
        sign = lambda v: 0 if v == 0 else (1 if v > 0 else -1)
        if (special(a) and math.isnan(a)) or (special(b) and math.isnan(b)):
            return math.nan
        product = sign(a) * sign(b)
        return product * math.inf if product else math.nan
    return a * b


def exact_total(a, b):
    if special(a) or special(b):
        return (a if special(a) else 0.0) + (b if special(b) else 0.0)
    return a + b


def zero_sign(negatives, mode):
    """Whether a zero sum of terms, some of them negative, is -0."""
    if all(negatives):
        return True
    return mode == "rm" and any(negatives)


def check_arithmetic(runner, rng, count):
    for format in (F16, BF16, F32, F64):
        modes = ["rn"] if format.bits == 16 else ["rn", "rz", "rm", "rp"]
        for mode in modes:
            a, b, c = (operands(format, count, rng) for _ in range(3))
            values = [[format.decode(x) for x in xs] for xs in (a, b, c)]
            sign = lambda bits: bool(bits & format.sign)
            infix = f".{mode}.{format.name}"
            got = runner.run(f"add{infix} $d, $0, $1;",
                             [(format.bits, a), (format.bits, b)], format.bits)
            exact = [rounded(exact_total(x, y), format, mode,
                             zero_sign([sign(p), sign(q)], mode))
                     for x, y, p, q in zip(values[0], values[1], a, b)]
            compare("add" + infix, format, got, exact, zip(a, b))
            got = runner.run(f"mul{infix} $d, $0, $1;",
                             [(format.bits, a), (format.bits, b)], format.bits)
            exact = [rounded(exact_product(x, y), format, mode,
                             sign(p) != sign(q))
                     for x, y, p, q in zip(values[0], values[1], a, b)]
            # A product that underflows to zero keeps its sign.
            exact = [e if e is None or e & (format.sign - 1) else
                     (format.sign if sign(p) != sign(q) else 0)
                     for e, p, q in zip(exact, a, b)]
            compare("mul" + infix, format, got, exact, zip(a, b))
            got = runner.run(f"fma{infix} $d, $0, $1, $2;",
                             [(format.bits, x) for x in (a, b, c)], format.bits)
            exact = []
            for x, y, z, p, q, r in zip(*values, a, b, c):
                product = exact_product(x, y)
                exact.append(rounded(
                    exact_total(product, z), format, mode,
                    zero_sign([sign(p) != sign(q), sign(r)], mode)))
            compare("fma" + infix, format, got, exact, zip(a, b, c))
    for format in (F32, F64):
        for mode in ("rn", "rz", "rm", "rp"):
            a, b = (operands(format, count, rng) for _ in range(2))
            infix = f".{mode}.{format.name}"
            got = runner.run(f"div{infix} $d, $0, $1;",
                             [(format.bits, a), (format.bits, b)], format.bits)
            exact = []
            for p, q in zip(a, b):
                x, y = format.decode(p), format.decode(q)
                negative = bool(p & format.sign) != bool(q & format.sign)
                if special(x) or special(y) or y == 0:
                    exact.append(divide_special(x, y, negative, format))
                else:
                    exact.append(rounded(x / y, format, mode, negative))
            compare("div" + infix, format, got, exact, zip(a, b))


def check_mixed(runner, rng, count):
    for narrow in (F16, BF16):
        for mode in ("rn", "rz", "rm", "rp"):
            a, b = (operands(narrow, count, rng) for _ in range(2))
            c = operands(F32, count, rng)
            x, y = ([narrow.decode(v) for v in vs] for vs in (a, b))
            z = [F32.decode(v) for v in c]
            negative = [[bool(v & f.sign) for v in vs]
                        for f, vs in ((narrow, a), (narrow, b), (F32, c))]
            for sat in ("", ".sat"):
                for op in ("add", "sub", "fma"):
                    sources = [(16, a), (16, b), (32, c)]
                    if op != "fma":
                        del sources[1]
                    name = f"{op}.{mode}{sat}.f32.{narrow.name}"
                    places = ", ".join(f"${i}" for i in range(len(sources)))
                    got = runner.run(f"{name} $d, {places};", sources, 32)
                    exact = []
                    for p, q, r, m, n, o in zip(x, y, z, *negative):
                        if op == "fma":
                            p, m = exact_product(p, q), m != n
                        if op == "sub":
                            r, o = -r, not o
                        bits = rounded(exact_total(p, r), F32, mode,
                                       zero_sign([m, o], mode))
                        exact.append(saturated(bits) if sat else bits)
                    compare(name, F32, got, exact,
                            zip(*(values for _, values in sources)))


def saturated(bits):
    """A single clamped to [0, 1]; NaN becomes 0."""
    if bits is None or bits & F32.sign:
        return 0
    return min(bits, 0x3F800000)


def divide_special(x, y, negative, format):
    sign = format.sign if negative else 0
    nan = lambda v: special(v) and math.isnan(v)
    infinite = lambda v: special(v) and math.isinf(v)
    if nan(x) or nan(y) or (infinite(x) and infinite(y)) or (x == 0 and y == 0):
        return None
    return sign | (0 if infinite(y) else format.infinity)


def check_conversions(runner, rng, count, step):
    formats = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
    cases = [("rn", "f16", "f32"), ("rz", "f16", "f32"),
             ("rn", "bf16", "f32"), ("rz", "bf16", "f32"),
             ("rn", "f16", "f64"), ("rz", "f16", "f64"), ("rm", "f16", "f64"),
             ("rp", "f16", "f64"), ("rn", "bf16", "f64"),
             ("rz", "bf16", "f64"), ("rm", "bf16", "f64"),
             ("rp", "bf16", "f64"), ("rn", "f32", "f64"),
             ("rz", "f32", "f64"), ("rm", "f32", "f64"), ("rp", "f32", "f64"),
             ("rn", "bf16", "f16"), ("rn", "f16", "bf16")]
    for mode, to, source in cases:
        s, d = formats[source], formats[to]
        values = operands(s, count, rng) + ties(s, d, count // 4, rng)
        if s.bits == 16:
            values = list(range(0, 1 << 16, step))
        got = runner.run(f"cvt.{mode}.{to}.{source} $d, $0;",
                         [(s.bits, values)], d.bits)
        exact = [rounded(s.decode(v), d, mode, bool(v & s.sign))
                 for v in values]
        compare(f"cvt.{mode}.{to}.{source}", d, got, exact,
                zip(values))
    for to, source in (("f32", "f16"), ("f32", "bf16"), ("f64", "f16"),
                       ("f64", "f32")):
        s, d = formats[source], formats[to]
        values = (list(range(0, 1 << 16, step)) if s.bits == 16
                  else operands(s, count, rng))
        got = runner.run(f"cvt.{to}.{source} $d, $0;", [(s.bits, values)],
                         d.bits)
        exact = [rounded(s.decode(v), d, "rn", bool(v & s.sign))
                 for v in values]
        compare(f"cvt.{to}.{source}", d, got, exact, zip(values))
    # A pair; the first source is the upper half.
    for to in ("f16", "bf16"):
        d = formats[to]
        a, b = (operands(F32, count, rng) for _ in range(2))
        got = runner.run(f"cvt.rn.{to}x2.f32 $d, $0, $1;", [(32, a), (32, b)],
                         32)
        for half, values in ((16, a), (0, b)):
            exact = [rounded(F32.decode(v), d, "rn", bool(v & F32.sign))
                     for v in values]
            compare(f"cvt.rn.{to}x2.f32", d,
                    [g >> half & 0xFFFF for g in got], exact, zip(values))
    a = operands(F32, count, rng)
    got = runner.run("cvt.rna.tf32.f32 $d, $0;", [(32, a)], 32)
    tf32 = Format("f16", 8, 7)
    tf32.fraction_bits, tf32.bits, tf32.sign = 10, 19, 1 << 18
    tf32.infinity = 0xFF << 10
    exact = [rounded(F32.decode(v), tf32, "rna", bool(v & F32.sign))
             for v in a]
    compare("cvt.rna.tf32.f32", tf32, [g >> 13 for g in got], exact, zip(a))


def integer_range(bits, signed):
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (
        0, (1 << bits) - 1)


def check_integers(runner, rng, count):
    for format in (F16, BF16, F32, F64):
        for bits, signed in ((16, 1), (16, 0), (32, 1), (32, 0), (64, 1),
                             (64, 0)):
            name = f"{'s' if signed else 'u'}{bits}"
            low, high = integer_range(bits, signed)
            mask = (1 << bits) - 1
            # To an integer: rounded, then clamped.
            values = operands(format, count, rng)
            for mode in ("rni", "rzi", "rmi", "rpi"):
                got = runner.run(f"cvt.{mode}.{name}.{format.name} $d, $0;",
                                 [(format.bits, values)], bits)
                expected = []
                for v in values:
                    x = format.decode(v)
                    if special(x) and math.isnan(x):
                        wide = bits == 64 or format is F64
                        expected.append(1 << (bits - 1) if wide else 0)
                        continue
                    if not special(x):
                        x = {"rni": round, "rzi": math.trunc,
                             "rmi": math.floor, "rpi": math.ceil}[mode](x)
                    expected.append(int(min(max(x, low), high)) & mask)
                for g, e, v in zip(got, expected, values):
                    if g != e:
                        raise SystemExit(
                            f"cvt.{mode}.{name}.{format.name} of {hex(v)}: "
                            f"expected {hex(e)}, got {hex(g)}")
            # From an integer: rounded once.
            values = [rng.getrandbits(bits) >> rng.randrange(bits)
                      for _ in range(count)]
            modes = ["rn"] if format.bits == 16 else ["rn", "rz", "rm", "rp"]
            for mode in modes:
                got = runner.run(f"cvt.{mode}.{format.name}.{name} $d, $0;",
                                 [(bits, values)], format.bits)
                signed_values = [v - (1 << bits) if signed and v >> (bits - 1)
                                 else v for v in values]
                exact = [rounded(Fraction(v), format, mode, False)
                         for v in signed_values]
                compare(f"cvt.{mode}.{format.name}.{name}", format, got, exact,
                        zip(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="ptx-emulator")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--step", type=int, default=1,
                        help="every so many of the numbers of 16 bits")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.tool, folder)
        check_conversions(runner, rng, options.count, options.step)
        check_arithmetic(runner, rng, options.count)
        check_mixed(runner, rng, options.count)
        check_integers(runner, rng, options.count)


if __name__ == "__main__":
    main()
