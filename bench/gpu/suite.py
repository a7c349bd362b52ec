"""The GPU suite: runs the functions that bundle.py packed with it.

    python3 suite.py --output=FOLDER [--only=PART,...] [--shapes=REGEX]
    python3 suite.py --dry-run --library=libBNGradCudaEmulator.so --output=FOLDER

Parts: correctness, sanitizer, benchmark, counters. Needs numpy; an NVIDIA GPU and
PyTorch for more than a dry run. Writes FOLDER/gpu.{md,json,svg} after each
part, and exits with 1 if a result is incorrect. Failures are recorded, and the
run continues."""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import correctness
import device
import items
import results
import tools

PARTS = ["correctness", "sanitizer", "benchmark", "counters"]
# Seconds after which a part starts no new item: about 12 minutes in total.
# torch.compile takes seconds per shape and has its own limit.
SECONDS = {
    "correctness": 120,  # each of small and large
    "sanitizer": 100,  # each tool
    "benchmark": 180,
    "compile": 120,
    "counters": 100,
}


def make_item(entry):
    fields = ("layout", "type", "variant", "schedule", "format")
    return items.Item(tuple(entry["sizes"]), *(entry[field] for field in fields))


def first_line(error):
    text = f"{error}" if isinstance(error, device.Error) else f"{type(error).__name__}: {error}"
    return (text.splitlines() or [""])[0][:400]


class Suite:
    def __init__(self, options):
        self.options = options
        self.manifest = json.loads((HERE / "manifest.json").read_text())
        self.objects = {}
        self.chosen = {}
        for entry in self.manifest["items"]:
            item = make_item(entry)
            if "object" in entry and re.search(options.shapes, item.name):
                self.objects[item] = HERE / entry["object"]
                self.chosen[item] = entry.get("chosen", "")
        self.document = {"machine": self.describe(), "seconds": {}, "failed": {}}
        self.previous = self.load_previous()
        measured = set(items.large())
        self.large = [item for item in self.objects if item in measured]
        self.small = [item for item in self.objects if item.is_small]
        self.few = [item for item in items.small(few=True) if item in self.objects]

    def describe(self):
        found = {"gpu": "no GPU: dry run on the emulator", "commit": self.manifest["commit"]}
        found["chip"] = self.manifest["chip"]
        now = datetime.datetime.now(datetime.timezone.utc)
        found["date"] = now.strftime("%Y-%m-%d %H:%M UTC")
        if self.options.dry_run:
            return found
        found["gpu"] = found["software"] = "unknown"
        try:
            query = "--query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit"
            command = ["nvidia-smi", query, "--format=csv,noheader"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            name, driver, *rest = done.stdout.splitlines()[0].split(", ")
            found["gpu"] = name
            found["software"] = f"driver {driver}, at most {', '.join(rest)}"
        except Exception as error:
            found["software"] = first_line(error)
        try:
            import torch

            found["gpu"] = torch.cuda.get_device_name(0)
            found["l2_bytes"] = torch.cuda.get_device_properties(0).L2_cache_size
            found["software"] += (
                f"; PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
            )
        except Exception as error:
            found["software"] += f"; no PyTorch: {first_line(error)}"
        return found

    def load_previous(self):
        """Results of other parts in the folder, for this commit and this GPU."""
        path = self.options.output / "gpu.json"
        try:
            previous = json.loads(path.read_text())
        except (OSError, ValueError):
            return {}
        same = all(
            previous.get("machine", {}).get(key) == self.document["machine"][key]
            for key in ("gpu", "commit")
        )
        return previous if same else {}

    def save(self):
        merged = results.merge([self.previous, self.document])
        results.write(merged, self.options.output / "gpu")

    def run_all(self, name, wanted, check, entries):
        """Appends the result of `check` for each item of `wanted`."""
        deadline = time.monotonic() + SECONDS[name]
        for item in wanted:
            if time.monotonic() > deadline:
                entries.append({"name": item.name, "skipped": "no time left"})
                continue
            entry = {"name": item.name}
            try:
                entry.update(check(item))
            except Exception as error:
                entry["error"] = first_line(error)
                self.recover()
            entries.append(entry)

    def recover(self):
        """Clears an error of the library, so that the next item can run."""
        self.library.library.bngradCudaTakeStatus()
        self.library.messages = []

    def correctness(self):
        found = self.document["correctness"] = {}
        shifts = (0, 1) if self.options.dry_run else (0, 0, 1)

        def check_small(item):
            path = self.objects[item]
            return {"worst": correctness.check_small(self.library, item, path, shifts)}

        wanted = self.small
        if self.options.dry_run:
            wanted = [item for item in wanted if item.format == "isa"]
        for entry in self.manifest["items"]:
            if "error" in entry and re.search(self.options.shapes, make_item(entry).name):
                error = {"name": make_item(entry).name, "error": "not compiled: " + entry["error"]}
                found.setdefault("small", []).append(error)
        self.run_all("correctness", wanted, check_small, found.setdefault("small", []))
        print(f"correctness: {len(found['small'])} small functions", flush=True)
        if self.options.dry_run:
            # Items that are too large for the emulator, or that it cannot interpret.
            rest = [item for item in self.objects if not (item.is_small and item.format == "isa")]

            def load(item):
                device.Gradient(item, self.objects[item])
                return {}

            if rest:
                self.run_all("correctness", rest, load, found.setdefault("load", []))
            return
        import benchmark

        def check_large(item):
            return {"worst": benchmark.check_large(self.library, item, self.objects[item])}

        self.run_all("correctness", self.large, check_large, found.setdefault("large", []))

    def sanitizer(self):
        found = self.document["sanitizer"] = {}
        if self.options.dry_run:
            return
        names = [item.name for item in self.few]
        for tool in ("memcheck", "racecheck"):
            found[tool] = tools.sanitize(tool, names, SECONDS["sanitizer"])
            print(f"{tool}: {found[tool].get('summary') or found[tool]}"[:300], flush=True)

    def benchmark(self):
        cases = self.document["benchmark"] = []
        for item in self.large:
            cases.append(
                {
                    "name": item.name,
                    "sizes": item.sizes,
                    "layout": item.layout,
                    "type": item.type,
                    "tensor_bytes": item.case.tensor_bytes,
                    "schedule": self.chosen[item],
                    "results": {},
                }
            )
        if self.options.dry_run:
            return
        import benchmark

        samples = [benchmark.measure_bandwidth()]
        self.document["bandwidth_gbps"] = results.summarize_bandwidth(samples)
        begin = time.monotonic()
        for item, case in zip(self.large, cases):
            try:
                case["results"] = benchmark.measure_item(
                    self.library,
                    item,
                    self.objects[item],
                    ("torch", "cudnn"),
                    begin + SECONDS["benchmark"],
                )
                samples.append(benchmark.measure_bandwidth())
            except Exception as error:
                case["results"] = {"bngrad": {"absent": first_line(error)}}
                self.recover()
        self.document["bandwidth_gbps"] = results.summarize_bandwidth(samples)
        self.save()
        print(f"benchmark: {len(cases)} cases; torch.compile now", flush=True)
        # Large shapes first: they matter most.
        deadline = time.monotonic() + SECONDS["compile"]
        order = sorted(zip(self.large, cases), key=lambda pair: -pair[0].case.tensor_bytes)
        for item, case in order:
            if item.case.tensor_bytes < results.LARGE_BYTES:
                continue
            if time.monotonic() > deadline:
                case["results"]["compile"] = {"absent": "no time left"}
                continue
            try:
                case["results"]["compile"] = benchmark.measure_peer(item, "compile")
            except Exception as error:
                case["results"]["compile"] = {"absent": first_line(error)}

    def counters(self):
        found = self.document["counters"] = {}
        deadline = time.monotonic() + SECONDS["counters"]
        by_name = {item.name: item for item in self.objects}
        for name in items.COUNTED:
            if name not in by_name:
                continue
            found[name] = {"tensor_bytes": by_name[name].case.tensor_bytes}
            if self.options.dry_run:
                continue
            left = deadline - time.monotonic()
            if left < 5:
                found[name]["absent"] = "no time left"
                continue
            found[name].update(tools.count_bytes(name, min(left, 60)))
            print(f"counters: {name}", flush=True)

    def run(self):
        self.library = device.Library(self.options.library)
        for part in self.options.only:
            begin = time.monotonic()
            try:
                getattr(self, part)()
            except Exception as error:
                self.document["failed"][part] = first_line(error)
            self.document["seconds"][part] = time.monotonic() - begin
            self.save()
        for line in results.summary(self.document):
            print(line)
        wrong = results.wrong_items(self.document)
        for part, name, why in wrong[:30]:
            print(f"WRONG: {part}: {name}: {why}")
        for part, why in self.document["failed"].items():
            print(f"FAILED: {part}: {why}")
        reports = [r for r in self.document.get("sanitizer", {}).values() if "error" in r]
        print(f"written: {self.options.output}/gpu.md, gpu.json, gpu.svg")
        return 1 if wrong or reports or self.document["failed"] else 0


def run_child(names):
    """Calls each item of `names` once; for tools that observe the process."""
    manifest = json.loads((HERE / "manifest.json").read_text())
    library = device.Library(HERE / "libBNGradCudaRuntime.so")
    for entry in manifest["items"]:
        item = make_item(entry)
        if item.name not in names or "object" not in entry:
            continue
        gradient = device.Gradient(item, HERE / entry["object"])
        buffers = device.Buffers(library, item, correctness.make_arguments(item, 1))
        library.check(gradient.bind(buffers.pointers)())
        buffers.free()
    print("child: done")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("OUT", "results")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(default))
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--shapes", default="", help="only items whose name matches")
    parser.add_argument("--library", default=HERE / "libBNGradCudaRuntime.so")
    parser.add_argument("--dry-run", action="store_true", help="run on the emulator, without GPU and PyTorch")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(set(options.child))
        return 0
    options.only = options.only.split(",")
    unknown = [part for part in options.only if part not in PARTS]
    if unknown:
        parser.error(f"expected --only to be some of {','.join(PARTS)}, got {unknown[0]}")
    return Suite(options).run()


if __name__ == "__main__":
    sys.exit(main())
