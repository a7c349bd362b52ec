"""sass.py OPT PTXAS CUOBJDUMP DIR CHIP...: the machine code of kernels, by chip.

The kernel that finishes sums must be short and without a loop, and load all that a thread reads at once. Elements are
rounded to bf16 two at a time by an instruction, if the chip has one. The kernels of one pass take few instructions in
all, and few for each element. Prints lengths for each chip, and `N checks, 0 failed`.
"""

import os
import re
import subprocess
import sys

from programs import Case, get_ptx, one_pass, two_pass

# Instructions of a thread that finishes 264 slices, at most.
MOST_FINISH = 560
# Those of a kernel of one pass, and for an element that it adds, or computes; of bf16, two elements are widened and one
# is rounded. Flat rows have sums for each lane, and so have innermost channels. Each step may wait for a stage.
MOST_INSTRUCTIONS = {"flat f32": 1400, "flat bf16": 1900, "flat bf16 by 4": 1350, "rows of f32": 1200,
                     "rows of bf16": 1500, "columns of f32": 1350, "columns of bf16": 1450}
MOST_ADDED = {"flat f32": 11, "flat bf16": 11.9, "flat bf16 by 4": 12.8, "rows of f32": 8, "rows of bf16": 8,
              "columns of f32": 11, "columns of bf16": 13}
MOST_COMPUTED = {"flat f32": 6, "flat bf16": 7.6, "flat bf16 by 4": 8.3, "rows of f32": 11.2, "rows of bf16": 10.3,
                 "columns of f32": 6.5, "columns of bf16": 8.5}


def disassemble(ptxas, cuobjdump, path, chip):
    """The instructions of the PTX in `path`, by kernel, as (address, text)."""
    cubin = path + ".cubin"
    subprocess.run([ptxas, f"--gpu-name={chip}", path, "-o", cubin], check=True)
    # It looks for nvdisasm in the PATH.
    variables = {**os.environ, "PATH": os.path.dirname(cuobjdump) + os.pathsep + os.environ["PATH"]}
    text = subprocess.run([cuobjdump, "-sass", cubin], capture_output=True, text=True, check=True,
                          env=variables).stdout
    kernels = {}
    for part in text.split("Function : ")[1:]:
        name, _, code = part.partition("\n")
        kernels[name.strip()] = [(int(address, 16), instruction.strip())
                                 for address, instruction in re.findall(r"/\*([0-9a-f]{4,})\*/\s+([^;]+);", code)]
    return kernels


def count(code, pattern):
    return sum(re.search(pattern, instruction) is not None for _, instruction in code)


def loops(code):
    """Branches to an earlier instruction."""
    targets = [(address, re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", instruction)) for address, instruction in code]
    return sum(match is not None and int(match[1], 16) < address for address, match in targets)


def check_finish(kernels):
    code = kernels["finish"]
    # Divisions and square roots have a slow path, which is called, for subnormals.
    end = next((i for i, (_, instruction) in enumerate(code) if re.search(r"\bEXIT\b", instruction) and
                not instruction.startswith("@")), len(code))
    first_sum = next(i for i, (_, instruction) in enumerate(code) if "FADD" in instruction)
    assert loops(code[:end]) == 0, "expected no loop"
    assert len(code) <= MOST_FINISH, f"expected at most {MOST_FINISH} instructions, got {len(code)}"
    # 64 threads for each channel: 5 slices of both sums for one of them.
    loads = count(code[:first_sum], r"\bLDG\b")
    assert loads >= 10, f"expected 10 loads before the first sum, got {loads}"
    # The channel's variance and scale come early, too.
    barrier = next(i for i, (_, instruction) in enumerate(code) if "BAR.SYNC" in instruction)
    late = count(code[barrier:], r"\bLDG\b")
    assert late == 0, f"expected no load after the barrier, got {late}"
    return f"finish: {len(code)} instructions"


def check_waits(kernels):
    """Kernels wait for the one ahead before they access memory; those that another one follows let it start then."""
    for name, code in kernels.items():
        names = [re.sub(r"^@\S+ ", "", instruction).split()[0].split(".")[0] for _, instruction in code]
        first = next(i for i, each in enumerate(names) if each in ("LDG", "STG", "LDGSTS", "UBLKCP"))
        starts = ["PREEXIT"] * name.startswith(("reduce", "finish"))
        found = [each for each in names if each in ("ACQBULK", "PREEXIT")]
        assert found == ["ACQBULK"] + starts, f"expected {name} to wait once, got {found}"
        assert all(names.index(each) < first for each in found), f"expected {name} to wait first"
        # The mbarriers of a kernel are initialized by then.
        late = [each for each in names[names.index("ACQBULK"):] if each == "FENCE"]
        assert not late, f"expected {name} to set up its mbarriers before it waits"
    return f"{len(kernels)} kernels wait first"


def check_rounding(kernels):
    code = kernels["apply"]
    stores, streamed = (count(code, rf"\bSTG\.E\.{form}128\b") for form in ("", "EF\\."))
    assert stores == 0 and streamed > 0, f"expected stores whose lines are evicted first, got {stores} others"
    # 4 pieces of 8 elements in a chunk; there may be one more in the rest.
    pairs = count(code, r"\bF2FP\.BF16\b")
    assert pairs in (16, 20), f"expected 16 or 20 conversions of pairs, got {pairs}"
    # Half of the last place that is kept.
    halves = count(code, r"\b0x7fff\b")
    assert halves == 0, f"expected no rounding in integer arithmetic, got {halves} additions"
    return f"apply to bf16: {len(code)} instructions"


def check_integer_rounding(kernels):
    code = kernels["apply"]
    assert count(code, r"\bF2FP\.BF16\b") == 0 and count(code, r"\b0x7fff\b") >= 32, "expected integer arithmetic"
    return f"apply to bf16: {len(code)} instructions"


def measure_loops(code, width):
    """The loops that read data in vectors: instructions for an element of both operands, and whether they store."""
    for address, instruction in code:
        branch = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", instruction)
        if not branch or int(branch[1], 16) >= address:
            continue
        body = [pair for pair in code if int(branch[1], 16) <= pair[0] <= address]
        for size in (8, 16):
            # Four pieces of each operand; others are the rest of the rows.
            if count(body, rf"\bLDS\.{8 * size}\b") == 8:
                yield len(body) / (4 * (size // width)), count(body, rf"\bSTG\.E\.{8 * size}\b") > 0


def check_one_pass(kernels, name):
    code = kernels["one_pass"]
    # Between the sums and the elements, nothing waits for memory.
    first_sum = next(i for i, (_, instruction) in enumerate(code) if "FADD" in instruction)
    late = count(code[first_sum:], r"\bLDG\b")
    assert late == 0, f"expected no load from memory after the first sum, got {late}"
    most = MOST_INSTRUCTIONS[name]
    assert len(code) <= most, f"expected at most {most} instructions, got {len(code)}"
    copies = [i for i, (_, instruction) in enumerate(code) if re.search(r"\bUBLKCP\b", instruction)]
    assert len(copies) == 2 or "columns" in name, f"expected a loop of a copy of each operand, got {len(copies)} copies"
    # One thread begins both, without a loop over the lanes for each.
    assert not copies or copies[1] - copies[0] <= 8, f"expected adjacent copies, got them {copies[1] - copies[0]} apart"
    lanes = count(code, r"\bBRA\.U\.ANY\b")
    assert lanes == 0, f"expected no loop over lanes, got {lanes}"
    found = {}
    # Slow paths behind the kernel branch back into it, which is no loop.
    for each, stores in measure_loops(code, 2 if "bf16" in name else 4):
        found[stores] = min(each, found.get(stores, each))
    assert set(found) == {False, True}, f"expected a loop that adds and one that stores, got {found}"
    for stores, most in ((False, MOST_ADDED[name]), (True, MOST_COMPUTED[name])):
        assert found[stores] <= most, f"expected at most {most} instructions for an element, got {found[stores]:.1f}"
    return f"{name}: {len(code)} instructions, {found[False]:.1f} to add and {found[True]:.1f} to compute an element"


def checks(chip):
    rounding = check_rounding if int(re.sub(r"\D", "", chip)) >= 80 else check_integer_rounding
    yield rounding, Case((32, 64, 3136), two_pass(threads=256, blocks=1056), chip=chip, data="bf16")
    yield rounding, Case((100352, 64), two_pass(threads=512, blocks=264), chip=chip, data="bf16")
    if int(re.sub(r"\D", "", chip)) >= 90:
        def one_pass_of(name, *case, **common):
            return lambda kernels: check_one_pass(kernels, name), Case(*case, chip=chip, **common)

        for data, channels in (("f32", 4), ("bf16", 8)):
            yield one_pass_of(f"flat {data}", (256, 2048, 7, 7), one_pass(columns=channels, cluster=4, threads=256),
                              data=data)
            yield one_pass_of(f"rows of {data}", (32, 256, 56, 56), data=data)
            yield one_pass_of(f"columns of {data}", (256, 7, 7, 2048), features=(3,), data=data)
        yield one_pass_of("flat bf16 by 4", (256, 1024, 14, 14), data="bf16")
        for shape in ((32, 64, 3136), (100352, 64)):
            yield check_waits, Case(shape, two_pass(threads=256, blocks=528), chip=chip)
        yield check_waits, Case((128, 1024, 49), chip=chip)
        yield check_waits, Case((64, 16), chip=chip, dynamic=True, mask=True)
    slices = two_pass(threads=512, blocks=264)
    yield check_finish, Case((33792, 64), slices, chip=chip)
    yield check_finish, Case((33792, 64), slices, chip=chip, data="bf16")
    yield check_finish, Case((3, 512 * 4 * 264), two_pass(threads=128, blocks=792), chip=chip, features=(0,))


def main():
    opt, ptxas, cuobjdump, directory, *chips = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    done = failed = 0
    for chip in chips:
        for check, case in checks(chip):
            path = os.path.join(directory, f"{chip}-{done}.ptx")
            with open(path, "w") as file:
                file.write(get_ptx(opt, case))
            done += 1
            try:
                print(f"{chip}: {check(disassemble(ptxas, cuobjdump, path, chip))}")
            except AssertionError as error:
                failed += 1
                print(f"FAILED {path}: {case}\n{error}")
    print(f"{done} checks, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
