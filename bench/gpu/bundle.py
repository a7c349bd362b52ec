"""bundle.py --tools=BIN --libraries=LIB --work=FOLDER --output=OUT.tar.gz: compiles
the functions of the GPU suite ahead of time, and packs them with the suite.

The bundle needs neither MLIR, LLVM nor a compiler. Functions are compiled several at a time, to a cubin if a CUDA
toolkit with ptxas is found. PTX have all of them without a toolkit, else those that are measured and one of each
kind. With nvdisasm, the manifest has the times that model.py calculates. --few compiles only the items of the
tests."""

import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "scripts")]

import devices
import items
import machine
import model
import objects
import schedule_kinds

SUITE = [
    "benchmark.py",
    "correctness.py",
    "cuda_driver.py",
    "device.py",
    "devices.py",
    "framework_tasks.py",
    "frameworks.py",
    "items.py",
    "journal.py",
    "peers.py",
    "plain.py",
    "plan.py",
    "plot.py",
    "process.py",
    "queued.py",
    "results.py",
    "suite.py",
    "summary.py",
    "timing.py",
    "tools.py",
    "triton_kernels.py",
    "worker.py",
]
LIMIT_MB = 60
TOOLKITS = ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")
# A chip without clusters, for which two_pass is chosen.
WITHOUT_CLUSTERS = "sm_80"
# Functions that one run compiles: its start takes as long as one or two of them.
CHUNK = 12
MODEL_DEVICES = ("H100", "H200")


def run(*command):
    """Standard output, or the error as an exception."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr else "failed")
    return done.stdout


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


def name_of(number):
    """The C name of a function."""
    return f"gradient_{number}"


class Bundle:
    """The functions, by number, and what becomes of them. `chosen` of an entry is the text of its schedule."""

    def __init__(self, options):
        self.options = options
        self.folder = options.work / "bngrad-gpu"
        self.sources = options.work / "sources"
        for folder in (self.folder, self.sources):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        (self.folder / "objects").mkdir()
        self.toolkit = None if options.no_cubins else find_toolkit()
        self.items, self.entries, self.schedules = [], [], []

    def add(self, item, schedule, **more):
        """Adds a function with the text of its schedule, if that is given."""
        self.items.append(item)
        self.schedules.append(schedule)
        fields = {name: getattr(item, name) for name in ("sizes", "layout", "type", "variant", "schedule", "format")}
        self.entries.append({**fields, "function": name_of(len(self.entries)), **more})

    def select(self, found):
        """Those of `found` that are wanted, each once."""
        return [item for item in dict.fromkeys(found) if re.search(self.options.shapes, item.name)]

    def add_items(self):
        """Adds the items of the benchmark, with their alternatives, and those of the tests. With --few, small ones of
        the model are measured."""
        kinds = schedule_kinds.read_kinds(self.options.tools / "bngrad-opt")
        schedule_kinds.check_names(kinds, "gpu", list(items.SCHEDULES.values()), "bench/gpu/items.py: SCHEDULES")
        small = self.select(items.small(self.options.few))
        measured = self.select(items.measured())
        if self.options.few:
            measured = [item for item in small if item in set(items.large())]
        small = [item for item in small if item not in set(measured)]
        free = [item for item in small if not item.schedule]
        chosen, without = (self.choose_schedules(measured, chip) for chip in (self.options.chip, WITHOUT_CLUSTERS))
        for item, *texts in zip(measured, chosen, without):
            self.add(item, "", measured=True, chosen=texts[0])
            for alternative in items.ALTERNATIVES:
                if text := items.derive_schedule(alternative, *texts):
                    self.add(dataclasses.replace(item, schedule=alternative), text, chosen=text)
        texts = dict(zip(free, self.choose_schedules(free, self.options.chip)))
        for item in small:
            text = items.SCHEDULES[item.schedule]
            self.add(item, text, chosen=text or texts[item])

    def write(self, name, numbered):
        source = self.sources / f"{name}.mlir"
        source.write_text("".join(items.make_ir(item, name_of(number)) for number, item in numbered))
        return source

    def choose_schedules(self, found, chip):
        """The texts of the schedules that are chosen for items."""
        if not found:
            return []
        source = self.write(f"choice-{chip}", enumerate(found))
        options = f"chip={chip} device-arguments=true stop-after=group"
        text = run(self.options.tools / "bngrad-opt", source, f"--bngrad-cuda-pipeline={options}")
        functions = re.split(r"func\.func @gradient_\d+\(", text)[1:]
        schedules = [re.search(r"#bngrad\.schedule<([^>]*)>", function) for function in functions]
        return [schedule[1] if schedule else "" for schedule in schedules]

    def chunks(self):
        """(format, numbers) of the runs of bngrad-compile, each for functions of one schedule."""
        with_ptx = set(items.representatives(self.items, items.kind_and_type))
        groups = {}
        for number, (item, entry) in enumerate(zip(self.items, self.entries)):
            formats = [item.format]
            if item.format == "isa" and self.toolkit:
                formats = ["bin", "isa"] if item in with_ptx or "measured" in entry else ["bin"]
            for format in formats:
                groups.setdefault((format, self.schedules[number]), []).append(number)
        for (format, _), numbers in groups.items():
            # Of one length, as far as possible.
            count = -(-len(numbers) // CHUNK)
            for first in range(count):
                yield format, numbers[first::count]

    def compile(self, chunk):
        """Compiles the functions of a chunk. One that cannot be compiled costs no other."""
        format, numbers = chunk
        path = f"objects/{numbers[0]:04d}-{format}.so"
        source = self.write(f"{numbers[0]:04d}-{format}-{len(numbers)}", [(n, self.items[n]) for n in numbers])
        command = [self.options.tools / "bngrad-compile", source, "-o", self.folder / path]
        command += ["--target=cuda", "--device-arguments", f"--chip={self.options.chip}"]
        command += [f"--format={format}", "--mcpu=x86-64"]
        if schedule := self.schedules[numbers[0]]:
            command.append(f"--schedule=#bngrad.schedule<{schedule}>")
        try:
            run(*command)
        except RuntimeError as error:
            if len(numbers) == 1:
                self.record(numbers[0], str(error))
                return
            half = len(numbers) // 2
            self.compile((format, numbers[:half]))
            self.compile((format, numbers[half:]))
            return
        for number in numbers:
            self.entries[number]["object" if format == self.items[number].format else "cubin"] = path

    def hash_functions(self):
        """Notes what tells whether a function is that of another bundle."""
        read = functools.cache(lambda path: objects.read_symbols((self.folder / path).read_bytes()))
        for item, entry in zip(self.items, self.entries):
            forms = [objects.hash_function(read(entry[form]), entry["function"]) for form in ("object", "cubin")
                     if form in entry]
            if forms:
                text = " ".join([item.name, entry["chosen"], *forms])
                entry["hash"] = hashlib.sha256(text.encode()).hexdigest()[:16]

    def record(self, number, error):
        """Notes why a function was not compiled: the shape does not allow the schedule, ptxas or fatbinary is missing,
        or it is an error, which the suite counts."""
        item, entry = self.items[number], self.entries[number]
        message = re.sub(r".*\.mlir:(\d+:\d+: )?", "", error)
        if item.schedule and re.search(r"expected a kernel to access|bytes of shared memory", message):
            entry["refused"] = f"{item.schedule} does not take this shape: {message}"
        elif item.format != "isa" and re.search(r"ptxas|fatbinary", message):
            entry["refused"] = message
        else:
            entry["error"] = message

    def predict(self, number):
        """Notes the times of model.py, if it can read the kernels."""
        item, options = self.items[number], self.options
        try:
            with tempfile.TemporaryDirectory() as work:
                compiler = model.Compiler(options.tools, options.ptxas, options.nvdisasm, pathlib.Path(work),
                                          options.chip)
                compiled = compiler.compile(item)
            times = {name: model.estimate_layouts(devices.DEVICES[name], item, compiled) for name in MODEL_DEVICES}
        except (RuntimeError, OSError, ValueError) as error:
            print(f"no calculated time: {item.name}: {error}", file=sys.stderr)
            return
        self.entries[number]["model_us"] = {name: [round(each, 1) for each in found] for name, found in times.items()}

    def build(self):
        """Compiles everything into the folder; returns the manifest."""
        begin = time.monotonic()
        self.add_items()
        options = self.options
        options.ptxas = shutil.which("ptxas") or os.path.join(os.environ.get("CUDA_ROOT", ""), "bin", "ptxas")
        work = [functools.partial(self.compile, chunk) for chunk in self.chunks()]
        if self.toolkit and shutil.which(options.nvdisasm):
            measured = [number for number, entry in enumerate(self.entries) if "measured" in entry]
            work += [functools.partial(self.predict, number) for number in measured]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(task) for task in work]:
                done.result()
        self.hash_functions()
        runtime = options.libraries / "libBNGradCudaRuntime.so"
        described = machine.describe(HERE.parent.parent, os.cpu_count())
        manifest = {
            "commit": described["commit"],
            "date": described["date"],
            "chip": options.chip,
            "toolkit": self.toolkit,
            "compile_s": round(time.monotonic() - begin, 1),
            "runtime": hashlib.sha256(runtime.read_bytes()).hexdigest()[:16],
            "items": self.entries,
        }
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=0) + "\n")
        shutil.copy(runtime, self.folder)
        for name in SUITE:
            shutil.copy(HERE / name, self.folder)
        for name in ("cases.py", "judge.py", "passes.py"):
            shutil.copy(HERE.parent / name, self.folder)
        return manifest


def add_package(wheels, folder):
    """Unpacks the wheels of the package and its compiler, for the part `frameworks`."""
    for pattern in ("bngrad-*-cp312-abi3-*.whl", "bngrad_compiler-*.whl"):
        found = sorted(wheels.glob(pattern))
        if not found:
            sys.exit(f"expected {pattern} in {wheels}, got none: run scripts/wheels.sh")
        with zipfile.ZipFile(found[-1]) as wheel:
            wheel.extractall(folder)


def pack(folder, output):
    output.parent.mkdir(parents=True, exist_ok=True)

    def anonymous(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(output, "w:gz", compresslevel=6) as archive:
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
    parser.add_argument("--wheels", type=pathlib.Path, help="a folder with the wheels of the package")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="for the times of the model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    bundle = Bundle(options)
    manifest = bundle.build()
    if options.wheels:
        add_package(options.wheels, bundle.folder / "site")
    size = pack(bundle.folder, options.output)
    failed = [entry for entry in manifest["items"] if "error" in entry]
    for entry in failed:
        print(f"not compiled: {entry['sizes']} {entry['layout']} {entry['type']}"
              f" {entry['variant']} {entry['schedule']}: {entry['error']}", file=sys.stderr)

    def count(key):
        return sum(key in entry for entry in manifest["items"])

    print(
        f"bundle: {count('object')} functions as PTX, {count('cubin')} as cubins, {count('refused')} schedules or formats"
        f" refused, {len(failed)} not compiled, {count('model_us')} with a calculated time, {size:.1f} MB,"
        f" {manifest['compile_s']:.0f} s"
    )
    if size > LIMIT_MB:
        print(f"expected at most {LIMIT_MB} MB, got {size:.1f}", file=sys.stderr)
    # The suite counts items that were not compiled, and runs the others.
    return 1 if size > LIMIT_MB else 0


if __name__ == "__main__":
    sys.exit(main())
