"""compilers_run.py BENCH FOLDER: a run of `bench.sh --compilers` with contenders of compilers_fake.py."""

import argparse
import copy
import dataclasses
import hashlib
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import cases
import machine
import passes
from compilers import driver, process, table, worker

HERE, FOLDER = pathlib.Path(__file__).resolve().parent, pathlib.Path(sys.argv[2])
driver.TITLES |= {"slow": "slow", "lazy": "lazy"}
driver.LIMITS["measure"], driver.MOST_FAILURES = 2, 2
process.PATIENCE = 0.1
SELECTED = [cases.Case((2, 3, 4, 4), "nchw", "f32"), cases.Case((4, 3, 5, 5), "nchw", "f32"),
            cases.Case((4, 3, 5, 5), "nhwc", "bf16"), cases.Case((6, 3, 5, 5), "nhwc", "bf16")]


def launch(name):
    return process.Process([sys.executable, "-B", HERE / "compilers_fake.py", sys.argv[1], name, FOLDER], None,
                           FOLDER / "log")


def show_protocol():
    """A process that breaks the protocol, and one that ends."""
    for code in ("print('not JSON', flush=True); input()", "import sys; sys.exit('no more memory')",
                 "import os; os.kill(os.getpid(), 9)"):
        child = process.Process([sys.executable, "-c", code], None, FOLDER / "protocol.log")
        try:
            child.ask({"do": "start"}, 30)
        except process.Failure as failure:
            print(f"failure: {failure}; alive: {child.is_alive}")


def show_busy():
    """The CPU time of another process."""
    code = "import sys\nfor line in sys.stdin:\n for i in range(3000000): pass\n print('{}', flush=True)"
    child = process.Process([sys.executable, "-c", code], None, FOLDER / "busy.log")
    child.ask({}, 60)
    before = child.busy()
    time.sleep(0.2)
    idle = child.busy() - before
    child.ask({}, 60)
    print(f"idle: {idle < 0.01}, busy: {child.busy() - before - idle > 0.01}")
    child.close()
    sample = driver.Sample(cold=1e-3, warm=1e-3, bandwidth_before=1e9, bandwidth_after=1.1e9, faults=0.0, foreign=0.1,
                           idle=0.01)
    for change in ({}, {"idle": 0.03}, {"foreign": 0.3}, {"bandwidth_after": 1.3e9}):
        print(f"disturbed with {change}: {driver.is_disturbed(dataclasses.replace(sample, **change))}")


def show_usage():
    """The share of other processes: a busy one takes some of its core."""
    core = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    child = process.Process([sys.executable, "-c", program], None, FOLDER / "busy.log")
    usage = worker.Usage([core])
    time.sleep(0.5)
    print(f"foreign: {0.02 < usage.foreign <= 1}")
    child.process.kill()
    child.close()


def show_settle():
    """A thread that computes for some 0.2 s, without Python's lock."""
    arguments = ("sha256", b"", b"", 400000)
    start = time.thread_time()
    hashlib.pbkdf2_hmac(*arguments)
    needed = time.thread_time() - start
    thread = threading.Thread(target=hashlib.pbkdf2_hmac, args=arguments)
    start = time.perf_counter()
    thread.start()
    worker.settle()
    print(f"settled after the thread: {time.perf_counter() - start > needed / 2}")
    thread.join()


def show_cpus():
    """Two CPUs of each of two cores."""
    os.sched_getaffinity = lambda process: {0, 1, 2, 3}
    for cpu in range(4):
        topology = FOLDER / "topology" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text("0-1\n" if cpu < 2 else "2-3\n")
    print("cpus", *(machine.choose_cpus(count, FOLDER / "topology") for count in (1, 2, 3)))


show_protocol()
show_busy()
show_usage()
show_settle()
show_cpus()
MACHINE = {
    "cpu": "none", "cpu_family": "", "cpu_model": "", "cores": 1, "hypervisor": "", "caches": {}, "os": "none",
    "huge_pages": "none", "isa": "x86-64-v3", "cpu_isa": "x86-64-v4", "threads": 1, "date": "today", "commit": "none", "load": 0}


def measure(selected, peers, norm_pass):
    """The document of a run."""
    arguments = argparse.Namespace(peers=peers, rounds=5, quick=False, norm_pass=norm_pass)
    document = driver.measure_all(arguments, FOLDER, selected, launch)
    document |= {"options": {"quick": False, "pass": norm_pass.name}, "machine": MACHINE}
    print(table.markdown(document))
    return document


forward = [dataclasses.replace(case, pass_name=passes.FORWARD.name) for case in SELECTED[1:3]]
measure(forward, "inductor|xla-one-pass|mlir|slow", passes.FORWARD)
document = measure(SELECTED, "", passes.BACKWARD)
print("kept" if table.summarize_limits(document)[1] else "not kept")
launched = [driver.Slot(name, launch) for name in ("bngrad", "xla")]
times = driver.measure_compilation(launch, launched, FOLDER, SELECTED[:1], 2)
print("compile time", times[SELECTED[0].name]["bngrad"][1])


def show(title, document):
    lines, is_kept = table.summarize_limits(document)
    print(f"{title}: {'kept' if is_kept else 'not kept'}")
    print("".join(line + "\n" for line in lines if "broken:" in line), end="")


for case in document["cases"]:
    case["verdicts"] = [verdict for verdict in case["verdicts"] if verdict["name"] != "inductor"]
wrong = copy.deepcopy(document)
wrong["cases"][0]["results"]["bngrad"] = {"error": "wrong result"}
wrong["failures"] = driver.find_failures(wrong["cases"])
show("BNGrad is wrong", wrong)
differ = copy.deepcopy(document)
for verdict in differ["cases"][0]["verdicts"]:
    if verdict["name"] == "twin":
        verdict["state"] = "broken"
show("the twins differ", differ)
show("without torch.compile", document)
