"""The process of one contender: reads requests, one JSON object a line, and answers each with one.

    python -m compilers.worker NAME OPTIONS    (run by driver.py, OPTIONS in JSON)

| request | answer |
|---|---|
| start | version and seconds of imports |
| prepare CASE | loads the data and compiles; seconds of the compilation |
| check | calls once and writes the results into the shared arrays |
| measure | one turn: times, bandwidths, page faults of a call |

An answer with `absent` or `error` has the reason instead. Between requests the process waits for
input. It answers only when its threads have stopped to wait for work.
"""

import json
import os
import resource
import sys
import threading
import time

from compilers import Absent

# Duration of the repeated calls of a short kernel, in seconds.
WINDOW = 2e-3
MOST_CALLS = 1000
# Seconds between two looks at the threads, and that a process waits for them at most.
PAUSE, MOST_WAIT = 2e-3, 0.5


def one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return f"{type(error).__name__}: {found}"[:300]


def seconds_of(call, calls=1):
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def is_another_running():
    """Whether a thread of this process, besides the one that asks, runs or would on a free core."""
    for thread in os.listdir("/proc/self/task"):
        if int(thread) != threading.get_native_id():
            try:
                with open(f"/proc/self/task/{thread}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] == "R":
                        return True
            except OSError:
                pass  # The thread has ended.
    return False


def settle():
    """Waits until the other threads of this process sleep."""
    end = time.perf_counter() + MOST_WAIT
    while True:
        time.sleep(PAUSE)
        if not is_another_running() or time.perf_counter() > end:
            return


class Usage:
    """Since it was made: the share of the cores' time that other processes took."""

    def __init__(self, cores):
        self.cores = cores
        self.start = self.read()

    def read(self):
        """Seconds of the clock, of this process, and in which the cores were idle."""
        names = {f"cpu{core}" for core in self.cores}
        idle = 0
        with open("/proc/stat") as file:
            for name, *ticks in map(str.split, file):
                if name in names:
                    idle += int(ticks[3]) + int(ticks[4])
        return time.perf_counter(), time.process_time(), idle / os.sysconf("SC_CLK_TCK")

    @property
    def foreign(self):
        wall, own, idle = (end - start for start, end in zip(self.start, self.read()))
        return max(0.0, 1 - (own + idle) / (wall * len(self.cores)))


class Worker:
    """Answers requests with `contender`. `probe` measures bandwidth and thereby empties the caches."""

    def __init__(self, contender, probe, cores):
        self.contender = contender
        self.cores = cores
        self.probe = probe
        self.calls = 1

    def start(self, request):
        start = time.perf_counter()
        version = self.contender.start()
        return {"version": version, "import_s": time.perf_counter() - start}

    def prepare(self, request):
        return {"compile_s": self.contender.prepare(request["case"], request["folder"]),
                "outputs": self.contender.outputs}

    def check(self, request):
        self.contender.check()
        shortest = min(seconds_of(self.contender.call) for _ in range(3))
        self.calls = max(1, min(MOST_CALLS, round(WINDOW / shortest)))
        return {"calls": self.calls}

    def measure(self, request):
        call, calls = self.contender.call, self.calls
        usage = Usage(self.cores)
        before = self.probe.bandwidth()
        cold = seconds_of(call)
        if calls > 1:
            call()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        warm = seconds_of(call, calls)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        settle()
        after = self.probe.bandwidth()
        return {"cold": cold, "warm": warm, "bandwidth_before": before, "bandwidth_after": after,
                "foreign": usage.foreign, "faults": faults / calls}

    def answer(self, request):
        try:
            return getattr(self, request["do"])(request)
        except Absent as error:
            return {"absent": str(error)}
        except Exception as error:  # Whatever a library raises costs only this contender.
            return {"error": one_line(error)}

    def serve(self, requests, answers):
        """Until the end of the requests."""
        for line in requests:
            answer = self.answer(json.loads(line))
            settle()
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def take_output():
    """The pipe to the parent; libraries print to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def main():
    answers = take_output()
    options = json.loads(sys.argv[2])
    # Before any library looks at the number of cores.
    os.sched_setaffinity(0, options["cores"])
    import native
    from compilers import contenders

    probe = native.Turn(options["work"])
    probe.load(options["cores"], options["cache_bytes"])
    contender = contenders.CONTENDERS[sys.argv[1]](options, probe.allocate)
    Worker(contender, probe, options["cores"]).serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
