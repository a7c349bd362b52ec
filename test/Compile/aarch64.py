"""aarch64.py BNGRAD-COMPILE GCC CROSS-GCC QEMU DIR: gradients on AArch64 have the bits that they have on x86-64.

All programs are compiled by BNGRAD-COMPILE for both, with the same schedule. A C program calls them on the same inputs,
here and in QEMU, and the results are compared byte by byte. Vectors are those of NEON, and of SVE with two lengths.
Prints `CPU: N programs, M results, 0 differ`.
"""

import pathlib
import subprocess
import sys

import numpy as np

# Sizes, the dim of the channels, and a schedule of each kind.
SHAPES = [
    ((3, 9, 1000), 1, "channels"),
    ((5, 40, 49), 1, "tiles"),
    ((4, 3, 9000), 1, "split"),
    ((333, 37), 1, "rows"),
    ((500, 16), 1, "rows"),
    ((70, 300), 1, "rows"),
    ((6, 5, 7), 1, "loops"),
]
VARIANTS = ["plain", "mask", "frozen", "dynamic"]
WIDTHS = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8}
SCHEDULE = "#bngrad.schedule<{kind}, threads = 2, vector_bits = {bits}, streaming_bytes = {bytes}, fma = true>"
# By CPU, the bits of its registers and the options with which QEMU has them.
CPUS = {"generic": (128, []), "neoverse-v1": (256, ["-cpu", "max,sve-max-vq=2"]), "a64fx": (512, ["-cpu", "a64fx"])}


def make_program(name, shape, feature, element, variant):
    """IR, and the (element type, sizes) of the arguments and of the results."""
    parameter = "f64" if element == "f64" else "f32"
    channels = (shape[feature],)

    def tensor(sizes, kind):
        dims = ["?" if variant == "dynamic" else str(size) for size in sizes]
        return f"tensor<{'x'.join(dims)}x{kind}>"

    arguments = {"grad_output": (element, shape), "input": (element, shape), "mean": (parameter, channels)}
    if variant == "mask":
        arguments |= {"inv_std": (parameter, channels), "mask": ("i1", shape)}
    else:
        arguments |= {"scale": (parameter, channels), "variance": (parameter, channels)}
    results = [(element, shape), (parameter, channels), (parameter, channels)]
    types = {key: tensor(sizes, kind) for key, (kind, sizes) in arguments.items()}
    of_results = ", ".join(tensor(sizes, kind) for kind, sizes in results)
    epsilon = "" if variant == "mask" else "epsilon = 1.0e-3 : f64, "
    frozen = ", statistics = #bngrad.statistics<global>" if variant == "frozen" else ""
    order = ["grad_output", "input", "scale", "mean", "variance", "inv_std", "mask"]
    operands = " ".join(f"{key}(%{key} : {types[key]})" for key in order if key in types)
    signature = ", ".join(f"%{key} : {text}" for key, text in types.items())
    ir = f"""func.func @{name}({signature}) -> ({of_results}) {{
  %0:3 = bngrad.batch_norm_backward {operands}
      {{{epsilon}feature_dims = array<i64: {feature}>{frozen}}} : {of_results}
  return %0#0, %0#1, %0#2 : {of_results}
}}
"""
    return ir, list(arguments.items()), results


def make_input(generator, key, kind, sizes):
    if kind == "i1":
        return generator.integers(0, 2, sizes).astype(np.uint8)
    low = 0.5 if key in ("variance", "inv_std") else -1.0
    values = generator.uniform(low, 2, sizes)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"f32": np.float32, "f16": np.float16, "f64": np.float64}[kind])


CALLER = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct descriptor { void *allocated, *aligned; int64_t offset, rest[2 * 8]; };
static struct descriptor read_array(int result) {
  int64_t header[10]; /* bytes, rank, sizes */
  struct descriptor d = {0};
  if (fread(header, 8, 10, stdin) != 10)
    exit(2);
  /* Lines of the result do not start where those of others do. */
  char *memory = malloc(header[0] + 64);
  d.allocated = memory;
  d.aligned = memory + (result ? 8 : 0);
  int64_t stride = 1;
  for (int64_t i = header[1]; i-- > 0; stride *= header[2 + i]) {
    d.rest[i] = header[2 + i];
    d.rest[header[1] + i] = stride;
  }
  if (!result && fread(d.aligned, 1, header[0], stdin) != (size_t)header[0])
    exit(2);
  return d;
}
static void write_array(struct descriptor d, int64_t bytes) {
  if (fwrite(d.aligned, 1, bytes, stdout) != (size_t)bytes)
    exit(3);
}
int main(void) {
  struct descriptor a[8];
"""


def compare(tools, work, cpu):
    """Compares all programs on `cpu` of AArch64 with those on x86-64."""
    compiler, gcc, cross_gcc, qemu = tools
    bits, options = CPUS[cpu]
    work.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(3)
    programs, data, caller, sizes_of_results = {}, b"", CALLER, []
    prototypes = ""
    for element in WIDTHS:
        for shape, feature, kind in SHAPES:
            for variant in VARIANTS:
                if kind == "loops" and variant == "dynamic":
                    continue
                name = f"f{len(programs)}"
                ir, arguments, results = make_program(name, shape, feature, element, variant)
                schedule = SCHEDULE.format(kind=kind, bits=bits, bytes=1 if variant != "frozen" else 1 << 30)
                programs[name] = ir, "#bngrad.schedule<loops>" if kind == "loops" else schedule
                arrays = [(make_input(generator, key, *of), of[1]) for key, of in arguments]
                for number, (array, sizes) in enumerate(arrays):
                    data += np.array([array.nbytes, len(sizes), *sizes] + [0] * (8 - len(sizes)), np.int64).tobytes()
                    data += array.tobytes()
                    caller += f"  a[{number}] = read_array(0);\n"
                count = len(arrays)
                for number, (of, sizes) in enumerate(results):
                    size = int(np.prod(sizes)) * WIDTHS[of]
                    data += np.array([size, len(sizes), *sizes] + [0] * (8 - len(sizes)), np.int64).tobytes()
                    caller += f"  a[{count + number}] = read_array(1);\n"
                pointers = ", ".join(f"&a[{i}]" for i in range(count + 3))
                prototypes += f"int32_t _mlir_ciface_{name}({', '.join(['void *'] * (count + 3))});\n"
                caller += f"  if (_mlir_ciface_{name}({pointers}))\n    return 4;\n"
                for number, (of, sizes) in enumerate(results):
                    size = int(np.prod(sizes)) * WIDTHS[of]
                    caller += f"  write_array(a[{count + number}], {size});\n"
                    sizes_of_results.append((f"{element} {'x'.join(map(str, shape))} {kind} {variant}, result {number}", size))
    (work / "caller.c").write_text("#include <stdint.h>\n" + prototypes + caller + "  return 0;\n}\n")
    (work / "input").write_bytes(data)
    outputs = {}
    machines = {"x86": ("x86_64-linux-gnu", "x86-64-v3"), "arm": ("aarch64-linux-gnu", cpu)}
    for machine, (triple, name) in machines.items():
        objects = []
        for schedule in sorted({schedule for _, schedule in programs.values()}):
            source = work / f"{len(objects)}.mlir"
            source.write_text("".join(ir for ir, own in programs.values() if own == schedule))
            objects.append(work / f"{machine}{len(objects)}.o")
            subprocess.run([compiler, source, "-o", objects[-1], f"--mtriple={triple}", f"--mcpu={name}",
                            f"--schedule={schedule}"], check=True)
        binary = work / machine
        linker = gcc if machine == "x86" else cross_gcc
        subprocess.run([linker, "-O1", work / "caller.c", *objects, "-o", binary, "-lm", "-ldl"], check=True)
        emulator = [] if machine == "x86" else [qemu, *options, "-L", "/usr/aarch64-linux-gnu"]
        with open(work / "input", "rb") as file:
            done = subprocess.run([*emulator, binary], stdin=file, stdout=subprocess.PIPE, check=True)
        outputs[machine] = done.stdout
    differ, position, own_results = 0, 0, []
    for text, size in sizes_of_results:
        own, other = (output[position:position + size] for output in outputs.values())
        position += size
        own_results.append(own)
        if own != other or len(own) != size:
            differ += 1
            print(f"differs on {cpu}: {text}")
    # The results are those of different programs, and not constants.
    assert len(outputs["x86"]) == position, f"expected {position} bytes, got {len(outputs['x86'])}"
    assert len(set(own_results)) > 0.8 * len(own_results), "expected results that differ from each other"
    print(f"{cpu}: {len(programs)} programs, {len(sizes_of_results)} results, {differ} differ", flush=True)


def main():
    tools, work = sys.argv[1:5], pathlib.Path(sys.argv[5])
    for cpu in CPUS:
        compare(tools, work / cpu, cpu)


main()
