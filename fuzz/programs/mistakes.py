"""The self-test: deliberate mistakes must be reported, correct results must not."""

from typing import Dict, Iterator, List, Tuple

import numpy as np

from bounded import Bounded
from floats import FLOATS, decode, encode
from execution import Case, Fault, Tools, compare
from generate import generate
from program import Program, expected
from ways import run_way
from writer import result_types


def rounded(program: Program, values: List[Bounded]) -> List[np.ndarray]:
    """The correctly rounded results."""
    with np.errstate(all="ignore"):
        return [encode(value.value, type.element) for value, type in zip(values, result_types(program))]


def exchanged(bits: np.ndarray) -> np.ndarray:
    """The elements, exchanged along the largest dim."""
    return np.roll(bits, 1, int(np.argmax(bits.shape))) if bits.ndim and max(bits.shape) > 1 else bits


def mistakes(program: Program, values: List[Bounded], bits: List[np.ndarray]) -> Iterator[Tuple[str, List[np.ndarray]]]:
    """(mistake, results with it), for the first result that can have it."""
    for index, (type, value) in enumerate(zip(result_types(program), values)):
        known = np.isfinite(value.error) & np.isfinite(value.value)
        if type.element not in FLOATS or not known.any():
            continue

        def but(other: np.ndarray) -> List[np.ndarray]:
            return [other if i == index else b for i, b in enumerate(bits)]

        exact = decode(bits[index], type.element)
        place = tuple(np.argwhere(known)[-1])
        beyond = exact.copy()
        # Just outside of the bound, by about two numbers of the type.
        beyond[place] = (value.value[place] + value.error[place] * 1.001
                         + 4 * FLOATS[type.element].roundoff * (np.abs(value.value[place]) + value.error[place])
                         + 2 * FLOATS[type.element].smallest)
        yield "beyond the bound", but(encode(beyond, type.element))
        yield "sign", but(encode(-exact, type.element))
        yield "neighbours exchanged", but(exchanged(bits[index]))
        nothing = exact.copy()
        nothing[place] = np.nan
        yield "one NaN", but(encode(nothing, type.element))
        return


def is_change(values: List[Bounded], before: List[np.ndarray], after: List[np.ndarray], what: str) -> bool:
    """Whether a mistake has an effect: not if exchanged channels are equal, nor within the bound."""
    for value, a, b in zip(values, before, after):
        if not np.array_equal(a, b):
            known = np.isfinite(value.error)
            if what in ("sign", "neighbours exchanged"):
                with np.errstate(invalid="ignore"):
                    other = -value.value if what == "sign" else exchanged(value.value)
                    return bool((known & (np.abs(other - value.value) > 4 * value.error)).any())
            return True
    return False


def broken_guards(tools: Tools) -> List[str]:
    """C functions that write out of bounds, called as if they were compiled programs."""
    import native
    import ctypes
    import subprocess

    source = tools.directory / "guards.c"
    source.write_text(
        "#include <stdint.h>\n"
        "struct d { float *a, *p; int64_t offset, sizes[1], strides[1]; };\n"
        "static void fill(struct d *r, int64_t n) {\n"
        "  for (int64_t i = 0; i < n; ++i) r->p[r->offset + i * r->strides[0]] = 1;\n"
        "}\n"
        "void _mlir_ciface_good(struct d *x, struct d *r) { fill(r, r->sizes[0]); }\n"
        "void _mlir_ciface_after(struct d *x, struct d *r) { fill(r, r->sizes[0] + 1); }\n"
        "void _mlir_ciface_before(struct d *x, struct d *r) { fill(r, r->sizes[0]); r->p[r->offset - 1] = 0; }\n"
        "void _mlir_ciface_between(struct d *x, struct d *r) { fill(r, r->sizes[0]); r->p[r->offset + 1] = 0; }\n"
        "void _mlir_ciface_argument(struct d *x, struct d *r) { fill(r, r->sizes[0]); x->p[0] = 3; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tools.directory / "guards.so", source], check=True)
    library = ctypes.CDLL(str(tools.directory / "guards.so"))
    unnoticed = []
    for name in ("good", "after", "before", "between", "argument"):
        layout = {"says": "dynamic", "strides": [3], "offset": 2}
        spec = {"name": name, "entry": "ciface",
                "arguments": [{"shape": (4,), "storage": "<u4", "bits": np.zeros(4, "<u4")}],
                "results": [{"shape": (5,), "storage": "<u4", "layout": layout, "shift": 1}]}
        if bool(native.call(library, spec)["faults"]) == (name == "good"):
            unnoticed.append(name)
    return unnoticed


def another_epsilon(tools: Tools, kind: str) -> List[Fault]:
    """Faults of a compiled program in which ops of a kind have another epsilon."""
    for seed in range(1, 200):
        program = generate(seed, "programs")
        changed, values = program.copy(), expected(program)
        for op in changed.ops:
            if op.kind == kind:
                op.attrs["epsilon"] *= 1.5
        if program.form == "tensor" and compare(Case(seed, program), "", rounded(changed, expected(changed)), values):
            return run_way(tools, [Case(seed, changed)], "cpu threads=1", {seed: values}, {})
    return []


def self_test(options, tools: Tools) -> int:
    made: Dict[str, List[int]] = {}
    blamed = 0
    for kind in ("programs", "views", "special"):
        for seed in range(1, 41):
            program = generate(seed, kind)
            case, values = Case(seed, program), expected(program)
            bits = rounded(program, values)
            blamed += bool(compare(case, "", bits, values))
            for what, other in mistakes(program, values, bits):
                if is_change(values, bits, other, what):
                    counts = made.setdefault(what, [0, 0])
                    counts[0] += bool(compare(case, "", other, values))
                    counts[1] += 1
    unnoticed = 0
    for what, (noticed, count) in sorted(made.items()):
        print(f"{'ok' if noticed == count else 'UNNOTICED'} {what}: {noticed} of {count}")
        unnoticed += noticed != count
    guards = broken_guards(tools)
    print(f"guards: {4 - len(guards)} of 4 mistakes noticed")
    unnoticed += len(guards)
    for kind in ("gradient", "training"):
        found = another_epsilon(tools, kind)
        print(f"another epsilon of {kind}: {len(found)} faults")
        unnoticed += not any(f.kind == "wrong" for f in found)
    print(f"{len(made) + 6} mistakes, {unnoticed} unnoticed; {blamed} right results blamed")
    return 1 if unnoticed or blamed or not made else 0
