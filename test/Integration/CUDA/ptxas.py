"""ptxas.py OPT PTXAS DIR [--quick] CHIP...: assembles a set of kernels for each chip; no kernel may spill or use a
stack. With --quick, of two types.

Prints the kernel with the most registers of each chip, and `N kernels, 0 failed`.
"""

import os
import re
import subprocess
import sys

from programs import Case, get_ptx, one_pass, two_pass

ROWS, COLUMNS = dict(shape=(32, 64, 28, 28)), dict(shape=(32, 28, 28, 64), features=(3,))
TYPES = [("f32", "f32"), ("bf16", "f32"), ("f16", "f16"), ("f64", "f64")]


def cases(chip, is_quick):
    has_clusters = int(re.sub(r"\D", "", chip)) >= 90
    for data, parameter in TYPES[:2] if is_quick else TYPES:
        for shape in (ROWS, COLUMNS):
            common = dict(chip=chip, data=data, parameter=parameter)
            yield Case(**shape, schedule=two_pass(threads=256, blocks=1024), **common)
            yield Case(**shape, schedule=two_pass(threads=512, blocks=264), **common)
            if has_clusters:
                yield Case(**shape, **common)
        if not has_clusters:
            continue
        common = dict(chip=chip, data=data, parameter=parameter)
        yield Case((16, 64, 32), one_pass(columns=4, threads=256), **common)
        # Flat rows, with the most threads that are chosen.
        yield Case((32, 2048, 7, 7), **common)
        yield Case((16, 64, 13, 17), one_pass(columns=8 if data == "bf16" else 4, cluster=8, threads=512), **common)
        yield Case((16, 64, 33), one_pass(columns=1, threads=512), **common)
        yield Case((512, 32), one_pass(columns=32, cluster=4, threads=256), **common)
        yield Case((1024, 24), one_pass(columns=3, cluster=8, threads=512), **common)
    for schedule in [two_pass(threads=256)] + [one_pass(threads=256)] * has_clusters:
        yield Case((8, 16, 64), schedule, chip=chip, data="bf16", mask=True, results=("f32", "f32", "f32"))
        yield Case((8, 16, 64), schedule, chip=chip, producer="relu", consumer="add")
        yield Case((8, 16, 64), schedule, chip=chip, statistics="global")
    yield from training_cases(chip, has_clusters, TYPES[:2] if is_quick else TYPES)
    yield Case((8, 16, 64), chip=chip, dynamic=True, data="f16")
    yield Case((64, 16), chip=chip, dynamic=True, mask=True)


def training_cases(chip, has_clusters, types):
    for data, parameter in types:
        common = dict(chip=chip, data=data, parameter=parameter, training=True)
        for shape in (ROWS, COLUMNS):
            yield Case(**shape, schedule=two_pass(threads=256, blocks=1024), **common)
            yield Case(**shape, schedule=two_pass(threads=512, blocks=264), **common)
            if has_clusters:
                yield Case(**shape, **common)
        if has_clusters:
            yield Case((32, 2048, 7, 7), **common)
            yield Case((16, 64, 32), one_pass(columns=4, threads=256), **common)
            yield Case((16, 64, 33), one_pass(columns=1, threads=512), **common)
            yield Case((512, 32), one_pass(columns=32, cluster=4, threads=256), **common)


def main():
    opt, ptxas, directory, *chips = sys.argv[1:]
    is_quick = chips[0] == "--quick"
    chips = chips[is_quick:]
    os.makedirs(directory, exist_ok=True)
    kernels = failed = 0
    for chip in chips:
        most = (0, "")
        for number, case in enumerate(cases(chip, is_quick)):
            path = os.path.join(directory, f"{chip}-{number}.ptx")
            with open(path, "w") as file:
                file.write(get_ptx(opt, case))
            done = subprocess.run([ptxas, "-v", f"--gpu-name={chip}", path, "-o", "/dev/null"], capture_output=True,
                                  text=True)
            found = re.findall(r"Compiling entry function '(\w+)'.*\n(?:.*\n)*?.*"
                               r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                               r".*Used (\d+) registers", done.stderr)
            kernels += len(found)
            fine = done.returncode == 0 and len(found) == done.stderr.count("Compiling entry function")
            if not found or not fine or any(int(n) for kernel in found for n in kernel[1:4]):
                failed += 1
                print(f"FAILED {path}: {case}\n{done.stdout}{done.stderr}")
            most = max([most] + [(int(kernel[4]), f"{kernel[0]} of {case}") for kernel in found])
        print(f"{chip}: at most {most[0]} registers: {most[1]}")
    print(f"{kernels} kernels, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
