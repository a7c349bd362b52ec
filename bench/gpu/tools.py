"""compute-sanitizer and ncu, each around a process that calls compiled gradients without PyTorch."""

import csv
import functools
import glob
import io
import os
import pathlib
import shutil
import subprocess
import sys

import process

HERE = pathlib.Path(__file__).resolve().parent
METRICS = {
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
}
# What compute-sanitizer and ncu say where they cannot observe the device, as on some shared ones. A result that is
# `refused` says so for all tasks.
NOT_SUPPORTED = "Device not supported"
NOT_ALLOWED = ("ERR_NVGPUCTRPERM", "not supported")
NAMES = ("compute-sanitizer", "ncu")
# Where they are, besides the PATH: of several versions, the newest is taken.
FOLDERS = ["/usr/local/cuda*/bin", "/usr/local/cuda*/compute-sanitizer", "/usr/local/cuda*/nsight-compute-*",
           "/opt/nvidia/nsight-compute/*"]
CLOCK_SECONDS = 3
# The first kernel of each call begins with one of these.
FIRST_KERNELS = ("one_pass", "reduce")


@functools.cache
def find(name):
    """The path of an NVIDIA tool, or None."""
    folders = (folder for pattern in FOLDERS for folder in sorted(glob.glob(pattern), reverse=True))
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def _run(command, timeout):
    """Runs a tool, which ends with this process."""
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        preexec_fn=process.end_with_me(),
    )


def _child(names, *options):
    """The command that calls items; worker.py has the options."""
    return [sys.executable, "-B", HERE / "worker.py", *options, *names]


def _form(cubins):
    return "--cubins" if cubins else "--ptx"


def _query(fields, timeout):
    """The values that nvidia-smi prints."""
    done = _run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], timeout)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise RuntimeError((lines or [done.stderr.strip() or "no output"])[0])
    return lines[0].split(", ")


def query_smi():
    """The driver, clocks and power as nvidia-smi prints them."""
    driver, *rest = _query("driver_version,clocks.max.sm,clocks.max.mem,power.limit", 60)
    return f"driver {driver}, at most {', '.join(rest)}"


def query_clock():
    """The clock of the multiprocessors in MHz, or None if nvidia-smi does not say it soon: the suite waits."""
    try:
        return float(_query("clocks.sm", CLOCK_SECONDS)[0].split()[0])
    except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired):
        return None


def sanitize(tool, names, timeout, cubins=False):
    """The report of compute-sanitizer's `tool` on the items `names`. Raises TimeoutExpired."""
    command = [find("compute-sanitizer"), "--target-processes", "all", "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]
    done = _run(command + _child(names, _form(cubins)), timeout)
    output = done.stdout + done.stderr
    if NOT_SUPPORTED in output:
        return {"absent": NOT_SUPPORTED, "refused": NOT_SUPPORTED}
    lines = [line for line in output.splitlines() if line.startswith("=========")]
    reports = [line.lstrip("= ") for line in lines if line.strip("= ")]
    if "child: done" not in output:
        return {"error": (output.strip().splitlines() or ["no output"])[-1][:300], "log": output[-4000:]}
    if done.returncode:
        return {"error": "; ".join(reports)[:600], "log": output[-8000:]}
    return {"items": len(names), "summary": reports[-1] if reports else "clean"}


def count_bytes(names, timeout, cubins=False):
    """DRAM bytes that one call of each item reads and writes, whose operands are not in the cache, as `calls`. Raises
    TimeoutExpired."""
    command = [find("ncu"), "--target-processes", "all", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw"]
    command += ["--metrics", ",".join(METRICS), "--print-units", "base"]
    command += _child(names, _form(cubins), "--flush")
    done = _run(command, timeout)
    lines = done.stdout.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        output = (done.stdout + done.stderr).splitlines()
        refusals = [line for line in output if any(text in line for text in NOT_ALLOWED)]
        errors = [line for line in output if "==ERROR==" in line]
        why = (refusals + errors + ["ncu gave no table"])[0][:300]
        # It is not allowed for any function then.
        return {"absent": why, **({"refused": why} if refusals else {})}
    calls = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[header:]))):
        if not (row.get("ID") or "").strip():
            continue  # row of units
        kernel = {"name": row.get("Kernel Name", "?")}
        for metric, key in METRICS.items():
            kernel[key] = float((row.get(metric) or "0").replace(",", ""))
        if not calls or (len(names) > 1 and kernel["name"].startswith(FIRST_KERNELS)):
            calls.append({"kernels": []})
        calls[-1]["kernels"].append(kernel)
    if len(calls) != len(names):
        return {"absent": f"expected the kernels of {len(names)} calls, got {len(calls)}"}
    for call in calls:
        call.update({key: sum(kernel[key] for kernel in call["kernels"]) for key in METRICS.values()})
    return {"calls": calls}
