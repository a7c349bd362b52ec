"""The machine on which a result was measured."""

import datetime
import os
import pathlib
import platform
import subprocess


def _output(*command, folder=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        return done.stdout.strip()
    except OSError:
        return ""


def _size(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text or 0)


def caches():
    """Bytes by level and type of the caches of the first core; empty if unknown."""
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level = (index / "level").read_text().strip()
        kind = (index / "type").read_text().strip()[:1].lower()
        name = f"L{level}{kind if kind in 'di' else ''}"
        found[name] = _size((index / "size").read_text().strip())
    return found


def last_level_cache():
    """Size of the last-level cache in bytes; 32 MiB if unknown."""
    return max(caches().values(), default=32 << 20)


def choose_cpus(count, topology="/sys/devices/system/cpu"):
    """Up to `count` of the CPUs on which this process may run, of different cores if there are as many."""
    allowed = sorted(os.sched_getaffinity(0))
    first_of_core = {}
    for cpu in allowed:
        path = pathlib.Path(topology, f"cpu{cpu}", "topology", "thread_siblings_list")
        core = path.read_text().strip() if path.exists() else cpu
        first_of_core.setdefault(core, cpu)
    found = list(first_of_core.values())
    return sorted((found + [cpu for cpu in allowed if cpu not in found])[:count])


def describe(root, threads):
    """The machine, the date and the commit."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    kernel = ".".join(platform.release().split(".")[:2])
    os_name = platform.system()
    release = pathlib.Path("/etc/os-release")
    if release.exists():
        for line in release.read_text().splitlines():
            if line.startswith("PRETTY_NAME="):
                os_name = line.split("=", 1)[1].strip('"')
    family = _output("lscpu")
    detail = {
        key.strip(): value.strip()
        for key, value in (
            line.split(":", 1) for line in family.splitlines() if ":" in line
        )
    }
    commit = _output("git", "rev-parse", "--short=12", "HEAD", folder=root)
    if _output("git", "status", "--porcelain", "--untracked-files=no", folder=root):
        commit += " (changed)"
    return {
        "cpu": model,
        "cpu_family": detail.get("CPU family", ""),
        "cpu_model": detail.get("Model", ""),
        "cores": os.cpu_count(),
        "caches": caches(),
        "os": f"{os_name}, Linux {kernel}",
        "hypervisor": detail.get("Hypervisor vendor", ""),
        "huge_pages": _huge_pages(),
        "threads": threads,
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
    }


def _huge_pages():
    path = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    text = path.read_text() if path.exists() else ""
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else "unknown"
