"""faults.py BUNDLE DRIVER OLD_DRIVER EMULATOR WORK [--set=SET] [--seed=N]: runs the GPU suite
over a driver with faults. Each fault must cost only the task in which it happens.

The sets: quick has some scenarios; all has every one, with more kills; random has faults in random
calls."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# The calls of the driver in which faults are injected at random.
CALLS = ("cuMemAlloc", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernelEx",
         "cuMemcpyAsync", "cuStreamSynchronize", "cuMemFree")
ACTIONS = ("error=2", "sticky=700", "sticky=719", "crash")
options = None


def check(condition, message):
    if not condition:
        raise AssertionError(message)


class Run:
    """A run of calls of the suite in a folder of its own, or one that continues another."""

    def __init__(self, name, arguments=(), faults=(), before=None, calls=("times", "checks"), **environment):
        self.folder = before.folder if before else options.work / name
        if not before:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.calls, self.arguments, self.bundle = calls, arguments, options.bundle
        self.environment = {**os.environ, "BNGRAD_CUDA_DRIVER": str(options.driver),
                            "FAKE_EMULATOR": str(options.emulator),
                            "FAKE_FAULTS": ";".join(faults), **environment}

    def start(self, call=None):
        command = [sys.executable, "-B", str(self.bundle / "suite.py"), f"--call={call or self.calls[0]}",
                   f"--output={self.folder}", "--seed=7", "--queue=2", *self.arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def finish(self, status=None):
        """Runs all calls; expects that the largest exit status is `status`."""
        begin, found, self.outputs = time.time(), [], []
        for call in self.calls:
            process = self.start(call)
            self.outputs.append(process.communicate(timeout=300)[0])
            found.append(process.returncode)
        self.output = "".join(self.outputs)
        self.seconds = time.time() - begin
        check("Traceback" not in self.output, self.output)
        check(status is None or max(found) == status, f"expected exit status {status}, got {found}: {self.output}")
        return self

    def records(self):
        lines = (self.folder / "journal.jsonl").read_text().split("\n")
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def results(self):
        return {r["task"]: r["result"] for r in self.records() if "result" in r}

    def errors(self):
        return {task: r["error"] for task, r in self.results().items() if "error" in r}

    def report(self):
        (path,) = self.folder.glob("*.md")
        return path.read_text()


def expect_only(run, clean, expected):
    """The tasks `expected` failed, with a part of their error; all others have results."""
    errors = run.errors()
    check(set(errors) == set(expected), f"expected errors of {sorted(expected)}, got {errors}")
    for task, text in expected.items():
        check(text in errors[task], f"{task}: expected '{text}', got '{errors[task]}'")
    missing = set(clean.results()) - set(run.results())
    check(not missing, f"without a result: {sorted(missing)}")


def processes_of(folder):
    """Processes that work in a folder of a run, by their open files and their program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            names = [os.readlink(f) for f in (entry / "fd").iterdir()]
            names += (entry / "cmdline").read_text().split("\0")
        except OSError:
            continue
        # Deleted files are those of an earlier test.
        if any(name.startswith(f"{folder}/") and not name.endswith("(deleted)") for name in names):
            found.append(int(entry.name))
    return found


# More than any run takes that ends in time on a loaded machine, and less than one that waits for all its tasks.
MOST_SECONDS = 200


def limit_of(clean, part=""):
    """Seconds after which a task of a part hangs: many times what one takes on this machine, at this load."""
    return 5 + 20 * max(r["seconds"] for r in clean.records() if "result" in r and r["task"].startswith(part))


def tasks(clean, part):
    return [task for task in clean.results() if task.startswith(part + "/")]


def all_kinds(clean):
    """A fault of each kind, each in another task, in one run."""
    smoke, benchmark, alternatives, small, queued = (
        tasks(clean, part) for part in ("smoke", "benchmark", "alternatives", "correctness", "queued"))
    # One launch for each call: alone, two in a stream, in place of each tensor that is read, and in a graph.
    one_pass = [task for task in queued if "one_pass" in task]
    faults = {
        smoke[0]: ("cuStreamSynchronize|1|sticky=700", "illegal memory access"),
        smoke[2]: ("cuLaunchKernelEx|1|crash", "SIGSEGV"),
        smoke[4]: ("cuMemAlloc|2|error=2", "out of memory"),
        benchmark[0]: ("cuGraphLaunch|3|sticky=719", "cuGraphLaunch: error 719"),
        benchmark[1]: ("cuGraphInstantiate|1|error=2", "not captured"),
        benchmark[2]: ("cuGraphGetNodes|0|corrupt", "a node of the graph allocates memory"),
        # The chosen schedule is called first.
        alternatives[0]: ("cuLaunchKernelEx|2|sticky=719", "cluster of 4: bngrad: error: cuLaunchKernelEx of"),
        alternatives[1]: ("cuLaunchKernelEx|2|crash", "SIGSEGV"),
        small[0]: ("cuModuleLoadDataEx|1|error=1", "cuModuleLoadDataEx"),
        small[1]: ("cuLaunchKernelEx|2|sticky=719", "cuLaunchKernelEx"),
        small[3]: ("cuMemcpyAsync|0|corrupt", "expected "),
        next(task for task in small[4:] if "one_pass" in task): ("cuLaunchKernelEx|1|corrupt", "expected "),
        one_pass[0]: ("cuLaunchKernelEx|3|corrupt", "in a stream: grad_input of queued call 1: other bits"),
        one_pass[1]: ("cuLaunchKernelEx|6|corrupt", "in place of the second argument: grad_input of queued call 0: other bits"),
        one_pass[2]: ("cuLaunchKernelEx|9|corrupt", "in a graph: grad_input of queued call 1: other bits"),
    }
    # A stream that is not held is no fault of a kernel.
    unheld = next(task for task in queued if task not in one_pass)
    fast = f"{unheld}|cuEventQuery|0|corrupt"
    run = Run("kinds", faults=[f"{task}|{fault}" for task, (fault, _) in faults.items()] + [fast]).finish(1)
    expect_only(run, clean, {task: text for task, (_, text) in faults.items()})
    check(f"WRONG: correctness: {small[3].split('/')[1]}: " in run.output, run.output)
    check(smoke[2].split("/")[1] in run.report(), run.report())
    check(alternatives[0].split("/")[1].startswith(benchmark[0].split("/")[1]), alternatives[0])
    for task in benchmark[2:]:
        check(task in faults or "us" in run.results()[task]["results"]["bngrad"], f"{run.results()[task]}")
    check(len(run.results()[unheld]["not_held"]) == 6, f"{run.results()[unheld]}")
    check("queued: of 1 functions, calls ran before all were queued" in run.outputs[1], run.output)
    # They are tried again only on demand.
    again = Run("", before=run).finish(1)
    check(len(again.errors()) == len(faults), again.output)
    Run("", ["--retry"], before=run).finish(0)
    check(not run.errors(), f"{run.errors()}")


def hanging_task(clean):
    """The next task runs after one that hangs. Tasks of smoke are short, and so is their limit."""
    task = tasks(clean, "smoke")[6]
    run = Run("hang", ["--only=smoke", f"--limit={limit_of(clean, 'smoke/')}"], [f"{task}|cuLaunchKernelEx|1|hang"],
              calls=["times"]).finish(1)
    check(list(run.errors()) == [task], f"{run.errors()}")
    check("not finished after" in run.errors()[task], f"{run.errors()}")


def no_device(clean):
    for name, driver, text in (
        ("none", "/none/libcuda.so.1", "cannot load /none/libcuda.so.1"),
        ("old", str(options.old_driver), "expected a driver of CUDA 11.8 or newer"),
    ):
        run = Run(name, calls=["times"], BNGRAD_CUDA_DRIVER=driver).finish(1)
        check(text in run.report(), run.report())
        check(run.seconds < MOST_SECONDS, f"{run.seconds}")
    run = Run("init", calls=["checks"], faults=["*|cuInit|0|error=100"]).finish(1)
    check("no CUDA-capable device is detected" in run.report(), run.report())
    run = Run("stuck", ["--limit=1"], faults=["probe/*|cuInit|0|hang"], calls=["times"]).finish(1)
    check("no driver: not finished after" in run.report(), run.report())
    check(run.seconds < MOST_SECONDS, f"{run.seconds}")
    folder = options.work / "without-numpy"
    folder.mkdir(exist_ok=True)
    (folder / "numpy.py").write_text("raise ModuleNotFoundError('expected numpy')\n")
    run = Run("numpy", calls=["times"], PYTHONPATH=str(folder)).finish(1)
    check("ModuleNotFoundError: expected numpy" in run.report(), run.report())
    # PTX of version 8.0 is too new. Each function has its error.
    run = Run("ptx", ["--only=smoke"], calls=["times"], FAKE_VERSION="11080").finish(1)
    check(len(run.errors()) == len(tasks(clean, "smoke")), f"{run.errors()}")
    check("unsupported toolchain" in run.report(), run.report())


def without_tools(clean):
    """No PyTorch and no tools of NVIDIA: the table says so, nothing else is tried, and BNGrad is measured."""
    folder = options.work / "without-torch"
    folder.mkdir(exist_ok=True)
    (folder / "torch.py").write_text("raise ModuleNotFoundError('expected torch')\n")
    bundle = options.work / "without-tools"
    shutil.copytree(options.bundle, bundle, dirs_exist_ok=True)
    text = (bundle / "tools.py").read_text()
    # Those of this machine are not found.
    (bundle / "tools.py").write_text(text.replace('"/opt', '"/none').replace('"/usr/local', '"/none'))
    run = Run("without", ["--only=benchmark,sanitizer,counters,compile"], PYTHONPATH=str(folder), PATH="/none")
    run.bundle = bundle
    run.finish(0)
    for text in ("compile absent: no PyTorch: expected torch", "memcheck: absent: expected compute-sanitizer",
                 "racecheck: absent", "synccheck: absent", "counters absent: expected ncu, found none"):
        check(text in run.report(), f"expected '{text}' in {run.report()}")
    check(set(run.results()) == set(tasks(clean, "benchmark")), f"{run.results()}")
    for task in tasks(clean, "benchmark"):
        check("us" in run.results()[task]["results"]["bngrad"], f"{run.results()[task]}")


def dying_device(clean):
    """A part is given up when its processes fail one after the other, whatever their kernels have in common."""
    run = Run("dying", ["--only=smoke,correctness"], ["smoke/*|cuLaunchKernelEx|1|crash"]).finish(1)
    check("processes in a row failed: the process died: SIGSEGV" in run.output, run.output)
    # One of each variant, type and layout has failed by then.
    check(5 <= len(run.errors()) <= 10 and set(run.errors()) < set(tasks(clean, "smoke")), f"{run.errors()}")
    check(set(tasks(clean, "correctness")) <= set(run.results()), run.output)


def faulty_kind(clean):
    """Kernels of a kind that fail do not cost those of others, which come first."""
    run = Run("kind", ["--only=smoke"], ["smoke/2x3x4x4 nchw*|cuLaunchKernelEx|1|crash"], calls=["times"]).finish(1)
    good = {task for task, result in run.results().items() if "error" not in result}
    check(good == {task for task in tasks(clean, "smoke") if "nhwc" in task}, f"{run.results()}")
    # What works is not delayed by what does not.
    order = ["error" not in r["result"] for r in run.records() if "result" in r]
    check(len(run.errors()) >= 5 and order.index(True) < 2 and not any(order[-4:]), f"{order}")


def dead_device(clean):
    """All parts end at once when the device does not answer any more, with one reason."""
    run = Run("dead", ["--only=smoke,benchmark,alternatives"], calls=["times"], faults=[
        "smoke/*|cuLaunchKernelEx|1|crash", "probe/answer|cuMemAlloc|1|error=100"]).finish(1)
    lines = [line for line in run.output.splitlines() if line.startswith("FAILED: ")]
    text = "FAILED: smoke, benchmark, alternatives: the device does not answer: "
    check(len(lines) == 1 and lines[0].startswith(text), run.output)
    for text in ("CUDA_ERROR_NO_DEVICE", "; before: the process died: SIGSEGV"):
        check(text in run.report(), f"expected '{text}' in {run.report()}")
    check(len(run.results()) == 5, f"{run.results()}")


def with_tools(name, arguments, **environment):
    """A run that finds compute-sanitizer and ncu."""
    run = Run(name, arguments, calls=["checks"], FAKE_PYTHON=sys.executable, **environment)
    folder = run.folder / "bin"
    folder.mkdir(parents=True)
    for tool in ("compute-sanitizer", "ncu"):
        shutil.copy(HERE / "Inputs" / "tool.py", folder / tool)
        (folder / tool).chmod(0o755)
    run.environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return run


def tools(clean):
    """compute-sanitizer and ncu, one of whose runs hangs."""
    run = with_tools("tools", ["--only=sanitizer,counters", f"--limit={limit_of(clean)}"], TOOL_HANGS="racecheck 1",
                     TOOL_FINDS="synccheck 0", TOOL_LOSES="memcheck 1", TOOL_REFUSES="synccheck 1", TOOL_DENIES=tasks(clean, "benchmark")[0].replace("benchmark", "counters")).finish(1)
    errors = run.errors()
    check(set(errors) == {f"sanitizer/{name}" for name in ("racecheck 1", "synccheck 0", "memcheck 1")}, f"{errors}")
    check("not finished" in errors["sanitizer/racecheck 1"], f"{errors}")
    check("Invalid __global__ write" in errors["sanitizer/synccheck 0"], f"{errors}")
    results = run.results()
    check(results["sanitizer/memcheck 0"]["items"] > 0, f"{results}")
    check("Device not supported" in results["sanitizer/synccheck 1"]["absent"], f"{results}")
    (first,) = (results[task] for task in tasks(run, "counters"))
    check("ERR_NVGPUCTRPERM" in first["absent"], f"{first}")
    # They are allowed for no other task either.
    check("counters absent: ==ERROR== ERR_NVGPUCTRPERM" in run.report(), run.report())
    check(not processes_of(run.folder), "processes are left")
    # Where they are allowed, each case has the bytes of its own call.
    again = Run("", ["--only=counters", "--retry"], before=run, calls=run.calls)
    again.environment = {**run.environment, "TOOL_DENIES": ""}
    again.finish()
    found = [run.results()[task] for task in tasks(run, "counters")]
    check(len(found) == len(tasks(clean, "benchmark")), f"{found}")
    check(all(each["read"] == 1024 and each["written"] == 512 for each in found), f"{found}")


def with_peers(name, arguments, faults=(), **environment):
    """A run that finds PyTorch and others."""
    bundle, module = options.work / f"{name}-bundle", options.work / f"{name}-torch"
    shutil.copytree(options.bundle, bundle, dirs_exist_ok=True)
    shutil.copy(HERE / "Inputs" / "peers" / "benchmark.py", bundle)
    module.mkdir(exist_ok=True)
    shutil.copy(HERE / "Inputs" / "peers" / "torch.py", module)
    run = Run(name, arguments, faults, calls=["times"], PYTHONPATH=str(module), **environment)
    run.bundle = bundle
    return run


def faulty_peers(clean):
    """A fault of another implementation costs its times, and not those of BNGrad."""
    run = with_peers("peers", ["--only=benchmark,compile", f"--limit={limit_of(clean)}"], TORCH_SECONDS="5",
                     PEER_FAULTS="torch=crash,cudnn=hang,apex=error,compile=error").finish(0)
    first = tasks(clean, "benchmark")[0].split("/")[1]
    why = {"torch": "the process died: SIGSEGV", "cudnn": "not finished after", "compile": "CUDA error: an illegal memory",
           "apex": "CUDA error: an illegal memory access was encountered"}
    for name, text in why.items():
        check(f"* {name} is not measured after {first}: {text}" in run.report(), f"{name}: {run.report()}")
    for task in tasks(clean, "benchmark"):
        found = run.results()[task]["results"]
        slow = run.results()[task.replace("benchmark", "compile")]["results"]
        check(found["bngrad"] == {"us": 1.0} and slow["quack"] == {"us": 2.0}, f"{found} {slow}")
        for name, text in why.items():
            check(text in {**found, **slow}[name]["absent"], f"{found} {slow}")
    check("PyTorch 0, cuDNN 0" in run.report(), run.report())
    # What they lack is measured on demand; implementations without an entry, too.
    before = len(run.records())
    again = Run("", [*run.arguments, "--retry"], before=run, calls=["times"])
    again.environment = {**run.environment, "PEER_FAULTS": "none=none", "TORCH_SECONDS": "0"}
    again.bundle = run.bundle
    again.finish(0)
    begun = {r["task"] for r in run.records()[before:] if "begin" in r}
    check(begun == set(tasks(clean, "benchmark")) | {t.replace("benchmark", "compile") for t in tasks(clean, "benchmark")}, f"{begun}")
    check("us" in run.results()[f"compile/{first}"]["results"]["compile"], f"{run.results()}")
    # PyTorch is imported before a task begins.
    longest = max(r["seconds"] for r in run.records() if "result" in r)
    check(longest < 5, f"{longest}")


def slow_peer(clean):
    """An implementation whose first call takes too long is not measured, the others are."""
    run = with_peers("slow-peer", ["--only=compile"], PEER_FAULTS="triton=slow")
    text = (run.bundle / "suite.py").read_text()
    (run.bundle / "suite.py").write_text(text.replace("WARM_SECONDS = 150", "WARM_SECONDS = 2"))
    run.finish(0)
    check("* triton is not measured after its first call: not finished after 2 s" in run.report(), run.report())
    for result in run.results().values():
        check(result["results"]["compile"] == {"us": 2.0} and "absent" in result["results"]["triton"], f"{result}")
    check(len(run.results()) == len(tasks(clean, "benchmark")), f"{run.results()}")


def slow_torch(clean):
    """Where PyTorch does not load in time, BNGrad is measured without it."""
    run = with_peers("slow", ["--only=benchmark,compile"], TORCH_SECONDS="1000", PEER_FAULTS="torch=crash")
    text = (run.bundle / "suite.py").read_text()
    (run.bundle / "suite.py").write_text(text.replace("START_SECONDS, TORCH_SECONDS = 60, 120", "START_SECONDS, TORCH_SECONDS = 60, 2"))
    run.finish(0)
    check("compile absent: no PyTorch: not finished after 2 s" in run.report(), run.report())
    check(set(run.results()) == set(tasks(clean, "benchmark")), f"{run.results()}")


def little_time(clean):
    """The run ends in time, also with a task that hangs: that has no result, and another run continues."""
    task = tasks(clean, "smoke")[3]
    run = Run("time", ["--only=smoke", "--minutes=0.15"], [f"{task}|cuLaunchKernelEx|1|hang"], calls=["times"]).finish(0)
    check(run.seconds < MOST_SECONDS, f"{run.seconds}")
    check(task not in run.results(), f"{run.results()}")
    Run("", ["--only=smoke"], before=run, calls=["times"]).finish(0)
    check(set(run.results()) == set(tasks(clean, "smoke")) and not run.errors(), f"{run.results()}")


def another_bundle(clean):
    """Of another bundle, what has changed is run again, and nothing else."""
    run = Run("bundles")
    shutil.copytree(clean.folder, run.folder)
    run.bundle = options.work / "another"
    shutil.copytree(options.bundle, run.bundle, dirs_exist_ok=True)
    manifest = json.loads((run.bundle / "manifest.json").read_text())
    manifest["commit"] = "another"
    changed = next(entry for entry in manifest["items"] if entry.get("measured"))
    changed["hash"] = "another"
    (run.bundle / "manifest.json").write_text(json.dumps(manifest))
    before = len(run.records())
    run.finish(0)
    name = "{}x{}x{}x{} {layout} {type}".format(*changed["sizes"], **changed)
    expected = {task for task in clean.results() if task.split("/")[1] in (name, f"{name} cluster of 4", f"{name} two passes")}
    begun = [r["task"] for r in run.records()[before:] if "begin" in r]
    check(set(begun) == expected and len(begun) == len(expected), f"expected {sorted(expected)}, got {begun}")
    check(len(expected) > 4 and "commit another" in run.report(), run.report())


def some_shapes(clean):
    """A run of some shapes has pieces of its own for the sanitizer, and leaves those of all as they are. What was stale
    in between is run again."""
    run = with_tools("shapes", ["--only=sanitizer"])
    run.finish(0)
    all_pieces = set(tasks(run, "sanitizer"))
    shapes = "^2x3x4x4 nchw f32$"
    some = Run("", ["--only=sanitizer", f"--shapes={shapes}"], before=run, calls=run.calls)
    some.environment = run.environment
    some.finish(0)
    expected = {f"sanitizer/{tool} 0 of {shapes}" for tool in ("memcheck", "racecheck", "synccheck")}
    check(set(run.results()) == all_pieces | expected, f"{set(run.results())}")
    for stale in ([], ["sanitizer/memcheck 0"]):
        with open(run.folder / "journal.jsonl", "a") as file:
            file.write(json.dumps({"stale": stale}) + "\n")
        before = len(run.records())
        again = Run("", ["--only=sanitizer"], before=run, calls=run.calls)
        again.environment = run.environment
        again.finish(0)
        records = run.records()[before:]
        check([r["task"] for r in records if "begin" in r] == stale, f"{records}")
        check(not any("stale" in r for r in records), f"{records}")


def kill(run, process, number=signal.SIGKILL):
    """Ends a run, after which nothing runs on."""
    process.send_signal(number)
    # A child that were alive would have the pipe.
    process.communicate()
    deadline = time.time() + 5
    while processes_of(run.folder) and time.time() < deadline:
        time.sleep(0.02)
    check(not processes_of(run.folder), "processes are left")


def orphans(clean):
    """A task that hangs, and a tool that hangs, end with the suite."""
    task = tasks(clean, "smoke")[1]
    hanging = Run("hanging", faults=[f"{task}|cuLaunchKernelEx|1|hang"])
    tool = with_tools("hanging-tool", ["--only=sanitizer"], TOOL_HANGS="memcheck 0")
    for run, name in ((hanging, task), (tool, "sanitizer/memcheck 0")):
        process = run.start()
        deadline = time.time() + 60
        while time.time() < deadline:
            time.sleep(0.05)
            if (run.folder / "journal.jsonl").exists() and run.records()[-1].get("task") == name:
                break
        check(time.time() < deadline, f"{name} did not begin")
        time.sleep(0.5)
        check(processes_of(run.folder), "expected processes")
        kill(run, process)


def termination(clean):
    """SIGTERM: the report has the tasks that are done."""
    task = tasks(clean, "smoke")[1]
    run = Run("termination", faults=[f"{task}|cuLaunchKernelEx|1|hang"])
    process = run.start()
    while not ((run.folder / "journal.jsonl").exists() and run.records()[-1].get("task") == task):
        time.sleep(0.05)
    kill(run, process, signal.SIGTERM)
    check(process.returncode == 128 + signal.SIGTERM, f"{process.returncode}")
    check("each kernel once: 1 correct, 0 failed" in run.report(), run.report())


def kill_at(clean, seconds, number):
    """SIGKILL after `seconds`: at most one task is lost, and another run continues."""
    run = Run(f"kill{number}")
    process = run.start(run.calls[number % 2])
    time.sleep(seconds)
    kill(run, process)
    before = run.records() if (run.folder / "journal.jsonl").exists() else []
    begun = {r["task"] for r in before if "begin" in r}
    lost = begun - {r["task"] for r in before if "result" in r}
    check(len(lost) <= 1, f"killed after {seconds:.2f} s: lost {lost}")
    for path in (path for suffix in ("md", "json", "svg") for path in run.folder.glob(f"*.{suffix}")):
        check(path.read_text().endswith("\n"), f"{path} is cut off")
    Run("", before=run).finish(0)
    expect_only(run, clean, {})
    finished = [r["task"] for r in run.records() if "result" in r]
    check(len(finished) == len(set(finished)), "a task was run again")


def shares(clean):
    """A part that is slow leaves time to the others, and goes on after them, but before the one that is last, which
    has its time."""
    # As long as it takes to begin a few tasks of each part, at this load.
    seconds = 15 + clean.seconds
    slow = [f"smoke/*|cuStreamSynchronize|0|sleep={seconds * 5:.0f}"]
    run = with_peers("shares", ["--only=smoke,benchmark,compile", f"--minutes={seconds / 60}"], slow,
                     PEER_FAULTS="none=none").finish(0)
    begun = [r["task"].split("/")[0] for r in run.records() if "begin" in r]
    first, last = begun.index("benchmark"), len(begun) - 1 - begun[::-1].index("benchmark")
    check(0 < first < len(tasks(clean, "smoke")), f"{begun}")
    check("smoke" in begun[last : begun.index("compile")], f"{begun}")
    check(run.seconds < MOST_SECONDS, f"{run.seconds}")


def order(clean):
    """Correctness tests are shuffled by the seed."""
    sys.path.insert(0, str(options.bundle))
    import plan

    def planned(seed):
        parts = plan.make_parts(plan.Catalogue(options.bundle), "checks", seed)
        return next([part.id(task) for task in part.tasks] for part in parts if part.name == "correctness")

    check(tasks(clean, "correctness") == planned(7), "expected the order of seed 7")
    check(planned(8) != planned(7) and sorted(planned(8)) == sorted(planned(7)), f"{planned(8)}")
    check("seed: 7" in clean.output and "seed 7" in clean.report(), clean.output)


def another_device(clean):
    """Results of another device are not continued."""
    run = Run("device", ["--only=smoke"], calls=["times"]).finish(0)
    Run("", ["--only=smoke"], before=run, calls=["times"], FAKE_NAME="another device").finish(0)
    machines = [r["machine"]["gpu"] for r in run.records() if "machine" in r]
    check(machines == ["another device"] and set(run.results()) == set(tasks(clean, "smoke")), f"{machines}")
    check(len(list(run.folder.glob("journal.*.jsonl"))) == 1, "the old journal")


def layouts(clean):
    """The files have the name of the device. By its slots of clusters, it has one of the model's layouts, whose times
    are compared."""
    bundle = options.work / "calculated"
    shutil.copytree(options.bundle, bundle, dirs_exist_ok=True)
    manifest = json.loads((bundle / "manifest.json").read_text())
    for entry in manifest["items"]:
        entry["model_us"] = {"H100": [512.5, 1025.5]}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    for layout, bus_bits, text, time in (
        ("18,18,18,16,16,16,16,14", "5120", "multiprocessors of the processing clusters by these: 18, 18, 18, 16,", "1.03e+03 µs"),
        ("18,18,18,18,18,18,18,6", "5120", "multiprocessors of the processing clusters by these: none of the model's; times with ~ are", "~1.03e+03 µs"),
        ("18,18,18,16,16,16,16,14", "6016", "the model does not know this device", ""),
    ):
        run = Run("layouts", ["--only=slots,benchmark", "--shapes=^2x3x4x4 nchw f32$"], calls=["times"],
                  FAKE_NAME="NVIDIA H100 80GB HBM3", FAKE_BUS_BITS=bus_bits, PTX_EMULATOR_PROCESSING_CLUSTERS=layout)
        run.bundle = bundle
        run.finish(0)
        report = (run.folder / "h100-80gb-hbm3-86gb-1980mhz-memory-2619mhz.md").read_text()
        for line in (f"* {text}", f"µs | {time} | ", "NVIDIA H100 80GB HBM3; 85.9 GB, 132 multiprocessors"):
            check(line in report, f"expected '{line}' in {report}")
    check("clusters of 16, 1 blocks on a multiprocessor: 112 blocks at once\n" in clean.output, clean.output)


def outputs(clean):
    """A call says at once what it does, and ends with a summary."""
    for call, output in zip(clean.calls, clean.outputs):
        lines = output.splitlines()
        check(lines[0].startswith(f"call {call}: 5.5 minutes at most"), output)
        check(lines[-1].startswith(f"written: {clean.folder}/"), output)


def torn_journal(clean):
    """A line that was cut off, as by a full disk, costs its task."""
    run = Run("torn", calls=["checks"])
    shutil.copytree(clean.folder, run.folder)
    path = run.folder / "journal.jsonl"
    lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    last = json.loads(lines[-1])["task"] if b"result" in lines[-1] else None
    path.write_bytes(b"\n".join(lines)[:-20])
    run.finish(0)
    expect_only(run, clean, {})
    count = sum(r.get("task") == last and "result" in r for r in run.records())
    check(last is None or count == 1, f"{last}: {count} results")


def random_faults(clean, seed):
    """Faults in random tasks and calls; the tasks that they do not name are good."""
    generator = random.Random(seed)
    chosen = generator.sample(tasks(clean, "smoke") + tasks(clean, "correctness"), 3)
    faults = []
    for task in chosen:
        call, action = generator.choice(CALLS), generator.choice(ACTIONS)
        faults.append(f"{task}|{call}|{generator.randint(1, 6)}|{action}")
    run = Run(f"random{seed}", faults=faults).finish()
    errors = set(run.errors())
    check(errors <= set(chosen), f"{faults}: {run.errors()}")
    missing = set(clean.results()) - set(run.results())
    check(not missing, f"{faults}: without a result: {sorted(missing)}")


def main():
    global options
    parser = argparse.ArgumentParser()
    for name in ("bundle", "driver", "old_driver", "emulator", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--set", choices=("quick", "all", "random"), default="quick")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    clean = Run("clean").finish(0)
    check(not clean.errors(), f"{clean.errors()}")
    generator = random.Random(options.seed)
    longest = clean.seconds
    scenarios = [(all_kinds,), (hanging_task,), (no_device,), (orphans,), (layouts,), (outputs,), (faulty_kind,),
                 (little_time,), (another_bundle,), (some_shapes,), (slow_peer,)]
    if options.set == "all":
        scenarios += [(order,), (torn_journal,), (termination,), (without_tools,), (dying_device,), (dead_device,),
                      (tools,), (faulty_peers,), (slow_torch,), (shares,), (another_device,)]
    kills = 40 if options.set == "all" else 0
    scenarios += [(kill_at, generator.uniform(0.1, longest), n) for n in range(kills)]
    if options.set == "random":
        scenarios = [(random_faults, seed) for seed in range(options.seed, options.seed + 40)]

    def attempt(scenario):
        function, *arguments = scenario
        try:
            function(clean, *arguments)
        except Exception as error:
            print(f"FAILED: {function.__name__}{tuple(arguments)}: {type(error).__name__}: {error}")
            return False
        return True

    # They mostly wait.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        failed = list(pool.map(attempt, scenarios)).count(False)
    print(f"{len(scenarios)} scenarios, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
