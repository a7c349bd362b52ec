"""bundle.py --tools=BIN --libraries=LIB --work=FOLDER --output=OUT.tar.gz: compiles
the functions of the GPU suite ahead of time, and packs them with the suite.

The bundle needs neither MLIR, LLVM nor a compiler. Each function is an object with
PTX and, if a CUDA toolkit with ptxas is found, one more with a cubin. --few compiles
only the items of the tests."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import items
import machine

SUITE = [
    "benchmark.py",
    "correctness.py",
    "cuda.py",
    "device.py",
    "items.py",
    "journal.py",
    "peers.py",
    "plain.py",
    "plan.py",
    "plot.py",
    "process.py",
    "results.py",
    "suite.py",
    "timing.py",
    "tools.py",
    "worker.py",
]
LIMIT_MB = 50
TOOLKITS = ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")


def run(*command):
    """Standard output, or the error as an exception."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr else "failed")
    return done.stdout


def choose_schedule(tools, source, chip):
    text = run(
        tools / "bngrad-opt",
        source,
        f"--bngrad-cuda-pipeline=chip={chip} device-arguments=true stop-after=group",
    )
    found = re.search(r"#bngrad\.schedule<([^>]*)>", text)
    return found[1] if found else ""


def find_toolkit():
    """The version of the CUDA toolkit that bngrad-compile finds, such as [13, 0]; or None.

    Sets CUDA_ROOT if that is in the usual folder."""
    roots = [os.environ[name] for name in TOOLKITS if os.environ.get(name)]
    ptxas = shutil.which("ptxas")
    if not roots and not ptxas:
        roots = ["/usr/local/cuda"]
    for root in roots:
        path = pathlib.Path(root) / "bin" / "ptxas"
        if path.exists():
            ptxas = str(path)
            os.environ["CUDA_ROOT"] = root
            break
    try:
        found = re.search(r"release (\d+)\.(\d+)", run(ptxas, "--version")) if ptxas else None
    except (OSError, RuntimeError):
        found = None
    return [int(found[1]), int(found[2])] if found else None


def compile_object(item, source, output, options, format):
    command = [options.tools / "bngrad-compile", source, "-o", output]
    command += ["--target=cuda", "--device-arguments", f"--chip={options.chip}"]
    command += [f"--format={format}", "--mcpu=x86-64"]
    if item.schedule:
        command.append(f"--schedule=#bngrad.schedule<{items.SCHEDULES[item.schedule]}>")
    run(*command)


def compile_item(item, stem, folder, options):
    """The entry of the manifest."""
    entry = {
        "sizes": item.sizes,
        "layout": item.layout,
        "type": item.type,
        "variant": item.variant,
        "schedule": item.schedule,
        "format": item.format,
    }
    source = stem.with_suffix(".mlir")
    source.write_text(items.make_ir(item))
    try:
        if item in options.measured:
            entry["chosen"] = choose_schedule(options.tools, source, options.chip)
            entry["measured"] = True
        path = f"objects/{stem.name}.so"
        compile_object(item, source, folder / path, options, item.format)
        entry["object"] = path
        if options.toolkit and item.format == "isa":
            path = f"cubins/{stem.name}.so"
            compile_object(item, source, folder / path, options, "bin")
            entry["cubin"] = path
    except RuntimeError as error:
        # The shape does not allow the schedule, or ptxas is missing: the suite
        # counts these.
        message = re.sub(r".*\.mlir:(\d+:\d+: )?", "", str(error))
        if item.schedule and "expected a kernel to access" in message:
            entry["refused"] = f"{item.schedule} does not take this shape"
        elif item.format != "isa" and re.search(r"ptxas|fatbinary", message):
            entry["refused"] = message
        else:
            entry["error"] = message
    return entry


def build(options):
    """Compiles all items into a folder; returns the manifest."""
    folder = options.work / "bngrad-gpu"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("objects", "cubins"):
        (folder / name).mkdir(parents=True)
    sources = options.work / "sources"
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir(parents=True)
    options.measured = set(items.large())
    options.toolkit = None if options.no_cubins else find_toolkit()
    wanted = ([] if options.few else items.large()) + items.small(options.few)
    wanted = [item for item in dict.fromkeys(wanted) if re.search(options.shapes, item.name)]

    def compile_numbered(numbered):
        number, item = numbered
        return compile_item(item, sources / f"{number:04d}", folder, options)

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        entries = list(pool.map(compile_numbered, enumerate(wanted)))
    described = machine.describe(HERE.parent.parent, os.cpu_count())
    manifest = {
        "commit": described["commit"],
        "date": described["date"],
        "chip": options.chip,
        "toolkit": options.toolkit,
        "compile_s": round(time.monotonic() - begin, 1),
        "items": entries,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=0) + "\n")
    shutil.copy(options.libraries / "libBNGradCudaRuntime.so", folder)
    for name in SUITE:
        shutil.copy(HERE / name, folder)
    for name in ("cases.py", "judge.py"):
        shutil.copy(HERE.parent / name, folder)
    return folder, manifest


def pack(folder, output):
    output.parent.mkdir(parents=True, exist_ok=True)

    def anonymous(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(output, "w:gz") as archive:
        archive.add(folder, folder.name, filter=anonymous)
    return output.stat().st_size / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--shapes", default="", help="only items whose name matches")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--no-cubins", action="store_true", help="PTX alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder, manifest = build(options)
    size = pack(folder, options.output)
    failed = [entry for entry in manifest["items"] if "error" in entry]
    for entry in failed:
        print(f"not compiled: {entry['sizes']} {entry['layout']} {entry['type']}"
              f" {entry['variant']} {entry['schedule']}: {entry['error']}", file=sys.stderr)
    refused = sum("refused" in entry for entry in manifest["items"])
    cubins = sum("cubin" in entry for entry in manifest["items"])
    print(
        f"bundle: {len(manifest['items']) - refused - len(failed)} objects, {cubins} with cubins,"
        f" {refused} schedules or formats refused, {len(failed)} not compiled, {size:.1f} MB,"
        f" {manifest['compile_s']:.0f} s"
    )
    if size > LIMIT_MB:
        print(f"expected at most {LIMIT_MB} MB, got {size:.1f}", file=sys.stderr)
    # The suite counts items that were not compiled, and runs the others.
    return 1 if size > LIMIT_MB else 0


if __name__ == "__main__":
    sys.exit(main())
