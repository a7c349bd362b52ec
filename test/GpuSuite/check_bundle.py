"""check_bundle.py BUNDLE.tar.gz [--mutate=KIND]: whether a bundle can be used on a machine with
glibc 2.34, Python 3.10 and a driver of CUDA 12.

* It has at most 50 MB.
* Its libraries need no newer version of a symbol, and no other library.
* Its Python has the syntax of 3.10, and no newer name of the standard library.
* No script has the name of a module that the suite or what it imports may import, as it would be found first.
* Each function is a binary or PTX, and PTX are what a driver of CUDA 12.0 assembles. Binaries of a toolkit of CUDA
  13 are for newer drivers only, as the manifest says.

--mutate makes a bundle wrong, to test this program."""

import argparse
import ast
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

MOST_MB = 50
# Those of RHEL 9 and of gcc 11.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}
NEEDED = re.compile(
    r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-x86-64\.so\.2|libstdc\+\+\.so\.6"
    r"|libgcc_s\.so\.1|libBNGradCudaRuntime\.so\.[\d.]+"
)
# The version of PTX of CUDA 12.0. Source: PTX ISA, "Release Notes".
NEWEST_PTX = (8, 0)
# Modules and attributes that are newer than Python 3.10.
NEWER = {"tomllib", "TaskGroup", "ExceptionGroup", "StrEnum", "file_digest", "UTC", "batched",
         "walk", "Self", "override", "chdir", "assert_never", "reveal_type", "cbrt", "exp2"}
# Packages that PyTorch, Triton and the other implementations import, besides the standard library.
PACKAGES = {"apex", "cuda", "cudnn", "cupy", "cutlass", "einops", "filelock", "flag_gems", "fsspec", "jinja2", "mpmath",
            "networkx", "numpy", "nvidia", "nvtx", "packaging", "psutil", "pynvml", "quack", "setuptools", "sympy",
            "syncbn", "torch", "triton", "tvm_ffi", "typing_extensions", "yaml"}
EM_CUDA = 190
OBJDUMP = "objdump"


def check_elf(path, problems):
    text = subprocess.run([OBJDUMP, "-p", "-T", path], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"^\s*NEEDED\s+(\S+)", text, re.MULTILINE):
        if not NEEDED.fullmatch(name):
            problems.append(f"{path.name}: needs {name}")
    for kind, version in set(re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)", text)):
        if tuple(map(int, version.split("."))) > NEWEST[kind]:
            problems.append(f"{path.name}: needs {kind}_{version}")


def check_python(path, problems):
    if path.stem in PACKAGES | sys.stdlib_module_names:
        problems.append(f"{path.name}: hides the module {path.stem}")
    try:
        tree = ast.parse(path.read_text(), feature_version=(3, 10))
    except SyntaxError as error:
        problems.append(f"{path.name}: {error}")
        return
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] + [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Try) and type(node).__name__ == "TryStar":
            names = ["except*"]
        for name in set(names) & NEWER:
            problems.append(f"{path.name}:{node.lineno}: {name} is newer than Python 3.10")


def ptx_versions(data):
    return [tuple(map(int, found)) for found in re.findall(rb"\.version (\d+)\.(\d+)", data)]


def cubin_abis(data):
    """The versions of the ABI in the headers of binaries for devices."""
    found = []
    for match in re.finditer(rb"\x7fELF\x02\x01", data):
        header = data[match.start() : match.start() + 20]
        if int.from_bytes(header[18:20], "little") == EM_CUDA:
            found.append(header[8])
    return found


def check_entry(folder, manifest, entry, problems):
    name = f"{entry['sizes']} {entry['layout']} {entry['type']} {entry['variant']} {entry['schedule']}"
    data = (folder / entry["object"]).read_bytes() if "object" in entry else b""
    if "object" not in entry and "cubin" not in entry:
        problems.append(f"{name}: no object")
    if data and entry["format"] == "isa":
        versions = ptx_versions(data)
        if not versions:
            problems.append(f"{name}: no PTX")
        for version in versions:
            if version > NEWEST_PTX:
                problems.append(f"{name}: PTX {version[0]}.{version[1]}")
        if cubin_abis(data):
            problems.append(f"{name}: a binary beside the PTX")
    if "cubin" in entry:
        abis = cubin_abis((folder / entry["cubin"]).read_bytes())
        toolkit = manifest["toolkit"]
        if not abis:
            problems.append(f"{name}: no binary")
        # ptxas of CUDA 13 writes version 8, which older drivers do not read.
        for abi in abis:
            if not toolkit or (abi >= 8) != (toolkit[0] >= 13):
                problems.append(f"{name}: a binary of ABI {abi}, from a toolkit {toolkit}")


def mutate(folder, kind):
    """Makes the unpacked bundle wrong."""
    manifest = json.loads((folder / "manifest.json").read_text())
    entry = next(entry for entry in manifest["items"] if "object" in entry and entry["format"] == "isa")
    target = folder / entry["object"]
    # The sources may be read-only.
    for path in folder.iterdir():
        path.chmod(path.stat().st_mode | 0o200)
    if kind == "ptx":
        target.write_bytes(target.read_bytes().replace(b".version 8.0", b".version 9.0"))
    elif kind == "no-ptx":
        target.write_bytes(target.read_bytes().replace(b".version", b".VERSION"))
    elif kind == "syntax":
        with open(folder / "suite.py", "a") as file:
            file.write("\ntry:\n    pass\nexcept* ValueError:\n    pass\n")
    elif kind == "name":
        with open(folder / "plan.py", "a") as file:
            file.write("\nfrom datetime import UTC\n")
    elif kind == "module":
        (folder / "tools.py").rename(folder / "cuda.py")
    elif kind == "glibc":
        library = folder / "libBNGradCudaRuntime.so"
        library.write_bytes(library.read_bytes().replace(b"GLIBC_2.34\0", b"GLIBC_2.99\0"))
    elif kind == "toolkit":
        manifest["toolkit"] = [12, 4]
        (folder / "manifest.json").write_text(json.dumps(manifest))
    else:
        sys.exit(f"unknown kind {kind}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--mutate")
    options = parser.parse_args()
    problems = []
    megabytes = options.bundle.stat().st_size / 1e6
    if megabytes > MOST_MB:
        problems.append(f"{megabytes:.1f} MB, expected at most {MOST_MB}")
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(options.bundle) as archive:
            archive.extractall(work)
        folder = pathlib.Path(work) / "bngrad-gpu"
        if options.mutate:
            mutate(folder, options.mutate)
        libraries = sorted(folder.rglob("*.so"))
        for path in libraries:
            check_elf(path, problems)
        scripts = sorted(folder.glob("*.py"))
        for path in scripts:
            check_python(path, problems)
        manifest = json.loads((folder / "manifest.json").read_text())
        entries = [entry for entry in manifest["items"] if "refused" not in entry]
        for entry in entries:
            check_entry(folder, manifest, entry, problems)
    for problem in problems[:20]:
        print(f"PROBLEM: {problem}")
    cubins = sum("cubin" in entry for entry in entries)
    print(f"{len(libraries)} libraries, {len(scripts)} scripts, {len(entries)} functions, {cubins}"
          f" with binaries, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
