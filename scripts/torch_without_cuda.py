#!/usr/bin/env python3
"""Lets the torch of PyPI, which is linked with CUDA's libraries, load without them.

  torch_without_cuda.py FOLDER    the folder of torch's own libraries

One library takes the place of all that are not there. It has their symbols, so that
the loader finds them; every function returns an error, as where there is no GPU. The
packages of these libraries are no longer requirements of torch, so that pip takes it
for complete.
"""

import re
import subprocess
import sys
from pathlib import Path


def read(*command) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    folder = Path(sys.argv[1])
    needed, undefined, defined = set(), set(), set()
    for library in [*folder.glob("libtorch*.so"), *folder.glob("libc10*.so")]:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-d", library)))
        undefined.update(read("nm", "-D", "-j", "--undefined-only", library).split())
        defined.update(read("nm", "-D", "-j", "--defined-only", library).split())
    versions: dict[str, list[str]] = {}
    for symbol in sorted(undefined - defined):
        name, _, version = symbol.partition("@")
        if re.match("_*(cu|nccl|nv)", name):
            versions.setdefault(version, []).append(name)
    functions = "".join(f"int {name}(void) {{ return 100; }}\n" for names in versions.values() for name in names)
    script = folder / "no-cuda.map"
    script.write_text("".join(
        f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items() if version))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", f"-Wl,--version-script={script}", "-x", "c", "-",
                    "-o", folder / "no-cuda.so"], input=functions, text=True, check=True)
    (metadata,) = folder.parents[1].glob("torch-*.dist-info/METADATA")
    lines = metadata.read_text().splitlines(keepends=True)
    metadata.write_text("".join(line for line in lines if not re.match("Requires-Dist: (cuda|nvidia|triton)", line)))
    for name in needed:
        if re.match("lib(cu|nccl|nv)", name) and not (folder / name).exists():
            (folder / name).symlink_to("no-cuda.so")


if __name__ == "__main__":
    main()
