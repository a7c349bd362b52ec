"""The initial inputs of the fuzzers, from the tests and from fuzz/libfuzzer/seeds."""

import random
import re
import shlex
import shutil
import struct
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = Path(__file__).resolve().parent / "seeds"


def make_npy(descr: str, shape: str, data: bytes, version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    prefix = 10 if version == 1 else 12
    text += " " * (-(prefix + len(text) + 1) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def write_npy(out: Path) -> None:
    for i, (descr, shape, size, version) in enumerate([
            ("'<f4'", "(3, 4)", 48, 1), ("'<f2'", "(5,)", 10, 1), ("'<f8'", "()", 8, 2), ("'|b1'", "(0, 3)", 0, 3),
            ("'<i8'", "(2, 1, 2)", 32, 1), ("'<V2'", "(7,)", 14, 1), ("'|V2'", "(1,)", 2, 2),
            ("'>f4'", "(2,)", 8, 1), ("[('a', '<f4')]", "(2,)", 8, 1)]):
        (out / f"{i}.npy").write_bytes(make_npy(descr, shape, bytes(range(size)), version))


def split_kernels(text: str) -> tuple[str, dict[str, str]]:
    """The text outside of kernels, and each kernel."""
    kernels, rest, at = {}, "", 0
    for match in re.finditer(r"^(?:\.visible |\.weak )?\.entry\s+([\w$]+)", text, flags=re.M):
        depth, end = 0, text.find("{", match.end())
        while end != -1 and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        if end == -1 or match.start() < at:
            continue
        rest += text[at:match.start()]
        kernels[match.group(1)] = text[match.start():end]
        at = end
    return rest + text[at:], kernels


def write_ptx(out: Path, build: Path) -> None:
    """One seed for each launch in the tests, with its kernel alone, and each kernel of bngrad-compile."""
    inputs = ROOT / "test" / "PtxEmulator" / "Inputs"
    files = {path.name: split_kernels(re.sub(r"^//.*\n|^\s*\n", "", path.read_text(), flags=re.M))
             for path in inputs.glob("*.ptx")}
    launches = set()
    for test in sorted((ROOT / "test" / "PtxEmulator").glob("*.test")):
        text = re.sub(r"\\\nRUN: *", " ", test.read_text())
        define = re.search(r"DEFINE: %\{run\} = (.*)", text)
        for line in re.findall(r"RUN:(.*)", text.replace("%{run}", define.group(1) if define else "")):
            file = re.search(r"ptx-emulator %S/Inputs/([\w.]+\.ptx)([^|>2&]*)", line)
            options = re.findall(r"--(?:kernel|grid|block|cluster|dynamic-shared|arg)=[^\s@%]+", line)
            if file and file.group(1) in files:
                launches.add((file.group(1), " ".join(options)))
    for i, (name, options) in enumerate(sorted(launches)):
        rest, kernels = files[name]
        kernel = re.search(r"--kernel=([\w$]+)", options)
        if kernel and kernel.group(1) in kernels:
            (out / f"{Path(name).stem}-{i}.ptx").write_text(
                f"// launch: {options}\n{rest}\n{kernels[kernel.group(1)]}\n")
    for i, source in enumerate(sorted((SEEDS / "files").glob("f*.mlir"))):
        for chip in ("sm_75", "sm_90"):
            ptx = out / "compiled.ptx"
            subprocess.run([build / "bin" / "bngrad-compile", source, "-o", ptx, "--target=cuda", f"--chip={chip}"],
                           check=True, capture_output=True,
                           env={"ASAN_OPTIONS": "allow_user_poisoning=0:detect_leaks=0"})
            rest, kernels = split_kernels(ptx.read_text())
            ptx.unlink()
            for name, kernel in kernels.items():
                count = kernel.split(")", 1)[0].count(".param")
                arguments = " ".join(["--arg=buffer:f32:64:iota"] * count)
                (out / f"compiled-{i}-{chip}-{name}.ptx").write_text(
                    f"// launch: --kernel={name} --grid=1 --block=64 {arguments}\n{rest}\n{kernel}\n")


def write_files(out: Path) -> None:
    """The files that the command lines name."""
    for path in (SEEDS / "files").glob("*.mlir"):
        shutil.copy(path, out)
    (out / "x.npy").write_bytes(make_npy("'<f4'", "(3, 4)", bytes(48)))
    (out / "c.npy").write_bytes(make_npy("'<f4'", "(4,)", bytes(16)))


def write_seeds(target: str, build: Path, work: Path, most: int, seed: int) -> Path:
    """A folder of at most `most` seeds of a target, drawn by `seed`."""
    out = work / target / "seeds"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    rng = random.Random(seed)
    if target in ("ir-text", "schedule"):
        sources = sorted((ROOT / "test").rglob("*.mlir")) if target == "ir-text" else []
        command = [build / "fuzz" / "fuzz-make-seeds", out, SEEDS / "schedule.mlir", *sources]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       stdin=subprocess.DEVNULL)
    elif target == "npy":
        write_npy(out)
    elif target == "ptx":
        write_ptx(out, build)
    elif target.endswith("-options"):
        shutil.copytree(SEEDS / target, out, dirs_exist_ok=True)
    seeds = sorted(out.iterdir())
    for path in rng.sample(seeds, max(0, len(seeds) - most)):
        path.unlink()
    files = work / "files"
    files.mkdir(exist_ok=True)
    write_files(files)
    return out


def launch_options(line: str) -> list[str]:
    """The command line of the first line of a PTX input."""
    return shlex.split(line.removeprefix("// launch: "))
