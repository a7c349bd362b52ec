"""compute-sanitizer and ncu, each around a process that calls compiled gradients without PyTorch."""

import csv
import io
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
METRICS = {
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
}
FOLDERS = ["/usr/local/cuda/bin", "/opt/nvidia/nsight-compute"]


def find(name):
    """The path of an NVIDIA tool, or None."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))
    if not found:
        for folder in ("/opt/nvidia", "/usr/local"):
            for path in sorted(pathlib.Path(folder).glob(f"*/**/{name}"), reverse=True):
                if path.is_file() and os.access(path, os.X_OK):
                    return str(path)
    return found


def _run(command, timeout):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout
    )


def sanitize(tool, names, timeout):
    """The report of compute-sanitizer's `tool` on the items `names`."""
    program = find("compute-sanitizer")
    if not program:
        return {"absent": "expected compute-sanitizer, found none"}
    command = [program, "--target-processes", "all", "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]
    command += [sys.executable, "-B", HERE / "suite.py", "--child"]
    try:
        done = _run(command + names, timeout)
    except subprocess.TimeoutExpired:
        return {"absent": f"not finished after {timeout:.0f} s"}
    output = done.stdout + done.stderr
    lines = [line for line in output.splitlines() if line.startswith("=========")]
    reports = [line.lstrip("= ") for line in lines if line.strip("= ")]
    if "child: done" not in output:
        return {"error": (output.strip().splitlines() or ["no output"])[-1][:300], "log": output[-4000:]}
    if done.returncode:
        return {"error": "; ".join(reports)[:600], "log": output[-8000:]}
    return {"items": len(names), "summary": reports[-1] if reports else "clean"}


def count_bytes(name, timeout):
    """DRAM bytes that one call of item `name` reads and writes."""
    program = find("ncu")
    if not program:
        return {"absent": "expected ncu, found none"}
    command = [program, "--target-processes", "all", "--clock-control", "none", "--csv", "--page", "raw"]
    command += ["--metrics", ",".join(METRICS), "--print-units", "base"]
    command += [sys.executable, "-B", HERE / "suite.py", "--child", name]
    try:
        done = _run(command, timeout)
    except subprocess.TimeoutExpired:
        return {"absent": f"not finished after {timeout:.0f} s"}
    lines = done.stdout.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "==ERROR==" in line]
        return {"absent": (errors or ["ncu gave no table"])[0][:300]}
    found = {"kernels": []}
    for row in csv.DictReader(io.StringIO("\n".join(lines[header:]))):
        if not (row.get("ID") or "").strip():
            continue  # row of units
        kernel = {"name": row.get("Kernel Name", "?")}
        for metric, key in METRICS.items():
            kernel[key] = float((row.get(metric) or "0").replace(",", ""))
        found["kernels"].append(kernel)
    for key in METRICS.values():
        found[key] = sum(kernel[key] for kernel in found["kernels"])
    return found
