"""A process that runs some tasks of one part of the GPU suite.

It reads a job in JSON from standard input and appends to the journal. After an error,
it checks the device. If the device does not answer, the process ends with RESTART,
and suite.py starts another one for the remaining tasks. What is slow and common to all
tasks, such as the import of PyTorch, is done before the first of them begins."""

import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback

import correctness
import cuda_driver
import device
import frameworks
import journal
import plain
import plan
import process
import queued
import timing
import tools

# Errors of a driver that is too old for a binary, by their text.
REFUSED = ("cuModuleLoadDataEx", "no image", "expected an image")
NO_PTX = {"absent": "the driver refuses cubins, and there is no PTX"}
# What a tool around a process has at least, in seconds, if the part ends before.
LEAST_SECONDS = 10
MOST_ABSENCES = 2
MOST_COUNTED = 4
# Read and written before a call whose DRAM bytes are counted: several last-level caches.
FLUSHED_BYTES = 256 << 20


class Late(Exception):
    """The time of the part is over. The task has no result."""


class Context:
    """The job with the library and the objects of its items."""

    def __init__(self, job, log):
        self.job = job
        self.log = log
        self.catalogue = plan.Catalogue(pathlib.Path(job["folder"]), job["shapes"])
        # The same items as in the plan.
        if not job["plans_cubins"]:
            self.catalogue.drop_binaries()
        self.cubins = job["cubins"]
        # The module that measures times.
        self.timer = plain
        # Of results of a tool, in a row.
        self.absences = 0
        # DRAM bytes by item, of those that one process of ncu called together, and how many the next one calls.
        self.counted, self.most_counted = {}, MOST_COUNTED
        self._library = None

    @property
    def peers(self):
        """The other implementations that the part measures, which need PyTorch."""
        return () if self.timer is plain else plan.PEERS.get(self.job["part"], ())

    @property
    def library(self):
        if self._library is None:
            self._library = device.Library(self.job["library"])
        return self._library

    def item(self, name):
        return self.catalogue.items[name]

    def with_function(self, name, run, as_ptx=False):
        """`run(function)` for the function of an item; with PTX if the driver refuses the cubin."""
        if self.cubins and not as_ptx and self.catalogue.has_cubin(name):
            try:
                return run(self.catalogue.function(name, True))
            except device.Error as error:
                if not any(text in str(error) for text in REFUSED):
                    raise
                self.cubins = False
                self.log.append({"cubins": False, "note": f"cubins are not used: {timing.first_line(error)}"})
        function = self.catalogue.function(name, False)
        return run(function) if function else NO_PTX

    def run_tool(self, run):
        """`run(seconds)` for a tool that ends in time for the part."""
        most = self.job["limit"] - 2
        seconds = min(most, max(self.job["end"] - time.time(), LEAST_SECONDS))
        try:
            result = run(seconds)
            # A tool that does not work twice in a row does not work at all, whatever it says.
            self.absences = self.absences + 1 if "absent" in result else 0
            return {"refused": result["absent"], **result} if self.absences == MOST_ABSENCES else result
        except subprocess.TimeoutExpired:
            if seconds < most:
                raise Late from None
            return {"error": f"not finished after {seconds:.0f} s"}

    def check_device(self):
        """Copies to the device and back; raises an error if it does not."""
        library = self.library
        library.library.bngradCudaTakeStatus()
        library.messages = []
        library.use_own_streams()
        source, target = ctypes.c_uint64(0x5A5A), ctypes.c_uint64(0)
        pointer = library.allocate(8)
        library.copy(pointer, ctypes.addressof(source), 8)
        library.copy(ctypes.addressof(target), pointer, 8)
        library.free(pointer)
        if source.value != target.value:
            raise device.Error("a copy to the device and back has other bits")

    def is_healthy(self):
        """Whether the device still copies after an error."""
        try:
            if self._library is not None:
                self.check_device()
        except Exception:
            return False
        return "torch" not in sys.modules or _torch_is_healthy()


def _torch_is_healthy():
    torch = sys.modules["torch"]
    try:
        return not torch.cuda.is_initialized() or torch.ones(4, device="cuda").sum().item() == 4
    except Exception:
        return False


#
# One function for each part: (context, task) -> result. One that is `refused`, with a reason, ends the part.
#


def probe(context, task):
    if task == "driver":
        driver = cuda_driver.Driver()
        return {"version": driver.version(), **driver.describe()}
    if task == "smi":
        return {"smi": tools.query_smi()}
    capability = context.library.capability()
    context.check_device()
    return {"capability": capability}


def slots(context, task):
    """Blocks in clusters that run at once, with one and with two blocks on a multiprocessor."""
    return {"slots": [[cluster, resident, cluster * context.library.count_clusters(cluster, resident)]
                      for cluster in (4, 8, 16) for resident in (1, 2)]}


def check(context, task):
    shifts = (0, 1) if context.job["dry_run"] else (0, 0, 1)
    name = task.removesuffix(plan.AS_PTX)

    def run(function):
        return {"worst": correctness.check_small(context.library, context.item(name), function, shifts)}

    return context.with_function(name, run, as_ptx=name != task)


def check_queued(context, task):
    def run(function):
        return queued.check(context.library, context.item(task), function, context.job["queue"])

    return context.with_function(task, run)


def load(context, task):
    device.Gradient(context.item(task), context.catalogue.function(task, False))
    return {}


def prepare_torch(context):
    """Imports PyTorch, without which BNGrad is measured alone."""
    try:
        import benchmark as with_torch
        import torch

        torch.ones(4, device="cuda").sum().item()
    except Exception as error:
        context.log.append({"missing": "torch", "why": f"no PyTorch: {timing.first_line(error)}"})
        return
    context.timer = with_torch
    context.log.append({"software": f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"})
    names = [name for name in plan.WARMED.get(context.job["part"], ()) if name not in context.job["excluded"]]
    with_torch.warm_up(names, lambda name: context.log.append({"at": name}))


def measure(context, task, peers, others=()):
    """Times of a function beside those of `peers`, which are not measured if they are excluded, and of the functions of
    the items `others`."""
    excluded = context.job["excluded"]

    def at(name):
        # Peers: their faults must not cost the result of BNGrad.
        context.log.append({"at": name if name in peers else ""})

    def run(function):
        functions = {timing.OWN: function}
        for other in others:
            functions[context.item(other).schedule] = context.catalogue.function(other, context.cubins)
        if None in functions.values():
            return NO_PTX
        names = [name for name in peers if name not in excluded]
        found = context.timer.measure_item(context.library, context.item(task), functions, at, names)
        for name in peers:
            if name in excluded and "results" in found:
                found["results"][name] = {"absent": excluded[name]}
        return found

    return context.with_function(task, run)


def benchmark(context, task):
    return measure(context, task, context.peers)


def alternative(context, task):
    """The chosen schedule of an item is measured again beside another one."""
    return measure(context, context.catalogue.original(task), (), [task])


def compiled(context, task):
    return measure(context, task, context.peers)


def sanitizer(context, task):
    tool, names = task.split()[0], context.catalogue.piece(task)
    return context.run_tool(lambda seconds: tools.sanitize(tool, names, seconds, context.cubins))


def counters(context, task):
    while task not in context.counted:
        left = context.job["tasks"][context.job["tasks"].index(task) :]
        names = left[: context.most_counted]
        found = context.run_tool(lambda seconds: tools.count_bytes(names, seconds, context.cubins))
        if "calls" in found:
            context.counted.update(zip(names, found["calls"]))
            continue
        # One that fails must not cost the others.
        context.most_counted = 1
        if "refused" in found or "error" in found or len(names) == 1:
            return found
    return {"tensor_bytes": context.item(task).case.tensor_bytes, **context.counted[task]}


def with_package(context, task):
    """A batch norm, or a training step, of a framework with and without BNGrad."""
    return frameworks.run(task)


PARTS = {
    "probe": probe,
    "slots": slots,
    "smoke": check,
    "correctness": check,
    "queued": check_queued,
    "load": load,
    "benchmark": benchmark,
    "alternatives": alternative,
    "sanitizer": sanitizer,
    "counters": counters,
    "compile": compiled,
    "frameworks": with_package,
}


def run(job):
    log = journal.Journal(pathlib.Path(job["journal"]))
    context = Context(job, log)
    function = PARTS[job["part"]]
    timing.MOST_CALLS = min(timing.MOST_CALLS, job["queue"])
    if job["torch"]:
        prepare_torch(context)
    if "torch" in job["needs"] and context.timer is plain:
        return 0
    if "bngrad" in job["needs"] and (why := frameworks.find_package()):
        log.append({"missing": "bngrad", "why": why})
        return 0
    times = []
    for task in job["tasks"]:
        begin = time.time()
        # One that took long, such as the first that compiles, says little about the next.
        if begin + statistics.median(times or [0]) > job["end"]:
            break
        name = f"{job['part']}/{task}"
        # For libraries in this process, such as those of profilers.
        os.environ["BNGRAD_GPU_ITEM"] = name
        log.begin(name, begin)
        failed = True
        try:
            result = function(context, task)
            failed = "error" in result
        except Late:
            return 0
        except Exception as error:
            # Into worker.log; an error of a call of BNGrad is told by its text.
            if not isinstance(error, device.Error):
                traceback.print_exc()
            result = {"error": timing.first_line(error)}
            if timing.is_fatal(error) and job["part"] in plan.WITH_TORCH:
                # suite.py knows whose fault it is.
                log.append({"fault": result["error"]})
                return process.RESTART
        seconds = time.time() - begin
        times.append(seconds)
        log.finish(name, result, seconds, job["keys"][task])
        if failed and job["part"] != "probe" and not context.is_healthy():
            return process.RESTART
        if "refused" in result:
            return 0
    return 0


def flush_cache(library):
    """Copies within the device, after which its last-level cache holds nothing else."""
    with device.Allocations(library) as memory:
        source, target = (memory.allocate(FLUSHED_BYTES // 2) for _ in range(2))
        library.copy(target, source, FLUSHED_BYTES // 2)


def call_items(names, cubins, flushes):
    """Calls items once, for a tool that observes this process, if `flushes` with a cache without their operands."""
    catalogue = plan.Catalogue()
    library = device.Library(plan.HERE / "libBNGradCudaRuntime.so")
    for name in names:
        item, function = catalogue.items[name], catalogue.function(name, cubins)
        if not function:
            print(f"child: {name} has no PTX")
            continue
        gradient = device.Gradient(item, function)
        # Random data of large items would take longer than all else.
        with (device.Buffers(library, item, correctness.make_arguments(item, 1)) if item.is_small
              else plain.Arrays(library, item, 1)) as buffers:
            call = gradient.bind(buffers.pointers if item.is_small else buffers.pointers[0])
            if flushes:
                flush_cache(library)
            library.check(call())
        print(f"child: called {name}")
    print("child: done")


def main():
    if len(sys.argv) > 1:
        process.die_with_parent(os.getppid())
        names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
        call_items(names, "--cubins" in sys.argv, "--flush" in sys.argv)
        return 0
    return run(json.load(sys.stdin))


if __name__ == "__main__":
    code = main()
    if len(sys.argv) > 1:
        sys.exit(code)
    # Libraries may not end in order after an error of the device.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
