"""Tells our faults from upstream's, and minimizes inputs; for run.py.

A fault is upstream's if MLIR alone has it: the packaged mlir-opt fails in the
same way (a signal, an abort, 20 seconds). It is run on the input, which it
parses, verifies and prints, and on the IR before the failing pass, with the
same pass if that is upstream's, otherwise with --canonicalize and --cse: these
run the same folders and verifiers of upstream as our pass. All other faults
are ours, even if upstream's code fails: then we called it in a way that no
upstream pass does.
"""

import hashlib
import os
import re
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HANG_SECONDS = 20
MEMORY_MB = 4096
# Limit during the search; slower inputs are run again, alone.
SLOW_SECONDS = 6
HEADER = b"// passes: "
IR_TARGETS = ("ir-text", "ir-bytecode", "schedule")
# Frames that do not identify a fault.
NOISE = re.compile(
    r"^(__interceptor_|__sanitizer|__asan|__ubsan|__assert_fail|raise|abort|gsignal|pthread_kill|fuzzer::|"
    r"operator new|operator delete|malloc|calloc|realloc|free|__libc|_start|main$|LLVMFuzzer|"
    r"bngrad::fuzz::|llvm::report_fatal_error|llvm::sys::|std::terminate|__cxa|__gnu_cxx::|SignalHandler|"
    r"llvm::install_bad_alloc|llvm::report_bad_alloc|<null>)")
FRAME = re.compile(r"^\s+#\d+ 0x[0-9a-f]+ (?:in )?(.*?)(?: (?:/|\(/|<null>).*)?$")


@dataclass
class Outcome:
    """The result of a fuzzer on one input."""
    failed: bool
    signature: str = ""
    log: str = ""


def find_llvm_bin(build: Path) -> Path:
    """The folder of the LLVM tools of a build."""
    cache = (build / "CMakeCache.txt").read_text()
    match = re.search(r"^LLVM_DIR:\w+=(.*)/lib/cmake/llvm$", cache, flags=re.M)
    return Path(match.group(1) if match else "/usr") / "bin"


def environment(build: Path, work: Path) -> dict[str, str]:
    env = dict(os.environ)
    symbolizer = str(find_llvm_bin(build) / "llvm-symbolizer")
    if os.access(symbolizer, os.X_OK):
        env["ASAN_SYMBOLIZER_PATH"] = env["UBSAN_SYMBOLIZER_PATH"] = symbolizer
    env["BNGRAD_FUZZ_FILES"] = str(work / "files")
    env["BNGRAD_FUZZ_TEXTS"] = str(work / "ir-text" / "seeds")
    env.setdefault("OMP_NUM_THREADS", "2")
    return env


def sign(log: str) -> str:
    """The signature of a fault: its kind and its place."""
    kind = "crash"
    for pattern in (r"bngrad-fuzz: fault: (.*)", r"(LLVM ERROR: .*)", r"Assertion `(.*)' failed",
                    r"runtime error: (.*)", r"ERROR: AddressSanitizer: (\S+)", r"ERROR: LeakSanitizer: (.*)",
                    r"ERROR: libFuzzer: (out-of-memory|timeout|deadly signal|fuzz target exited)"):
        match = re.search(pattern, log)
        if match:
            kind = re.sub(r"0x[0-9a-f]+|\d+", "N", match.group(1))[:100]
            break
    if kind == "timeout" or "out-of-memory" in kind or kind.startswith("LLVM ERROR"):
        # The place where a hang was stopped is random.
        in_pass = re.search(r"bngrad-fuzz: in pass (\S+)", log)
        return f"{kind} {in_pass.group(1) if in_pass else ''}".strip()
    if "expected" in kind or "not valid after" in kind or "without an error" in kind:
        return kind
    frames = []
    for line in log.splitlines():
        match = FRAME.match(line)
        if not match:
            if frames and line.strip().startswith(("SUMMARY", "0x", "Direct leak", "previously", "freed by")):
                break
            continue
        name = re.sub(r"\(.*|<.*", "", match.group(1)).strip()
        if name and not NOISE.match(name) and not name.startswith(("/", "(")):
            frames.append(name)
    return " < ".join([kind] + frames[:4])


class Fuzzer:
    """One target's executable, run on single inputs."""

    def __init__(self, target: str, build: Path, work: Path):
        self.target = target
        self.executable = build / "fuzz" / f"fuzz-{target}"
        self.env = environment(build, work)

    def run(self, data: bytes, trace: Path | None = None) -> Outcome:
        env = dict(self.env)
        if trace:
            env["BNGRAD_FUZZ_TRACE"] = str(trace)
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "input"
            path.write_bytes(data)
            # libFuzzer's own limit applies first.
            command = [str(self.executable), f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MB}",
                       f"-artifact_prefix={name}/", str(path)]
            try:
                done = subprocess.run(command, capture_output=True, env=env, stdin=subprocess.DEVNULL,
                                      timeout=3 * HANG_SECONDS)
                log, failed = done.stderr.decode(errors="replace"), done.returncode != 0
            except subprocess.TimeoutExpired as error:
                log, failed = (error.stderr or b"").decode(errors="replace") + "\nERROR: libFuzzer: timeout\n", True
        if trace and (trace / "pass").exists():
            log += "\nbngrad-fuzz: in pass " + innermost((trace / "pass").read_text())
        return Outcome(failed, sign(log) if failed else "", log)


def innermost(pipeline: str) -> str:
    """The pass in `builtin.module(func.func(pass{...}))`."""
    return re.sub(r"^(?:[a-z.]+\()*([a-z0-9-]+).*", r"\1", pipeline.strip(), flags=re.S)


def limit_memory() -> None:
    """The same limit as the fuzzers', which libFuzzer enforces there."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))


def mlir_opt_fails(llvm_bin: Path, path: Path, *options: str) -> bool:
    """Whether the packaged mlir-opt crashes or hangs."""
    # A read of uninitialized memory gives the same values as under AddressSanitizer.
    env = dict(os.environ, GLIBC_TUNABLES="glibc.malloc.perturb=65")
    command = [str(llvm_bin / "mlir-opt"), "--allow-unregistered-dialect", "--mlir-disable-threading", str(path),
               "-o", "/dev/null", *options]
    try:
        done = subprocess.run(command, capture_output=True, env=env, timeout=HANG_SECONDS, preexec_fn=limit_memory)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 1)


def is_in_parser(log: str) -> bool:
    """Whether upstream's parser of attributes and types fails, called for an op of ours that mlir-opt cannot parse."""
    for match in filter(None, map(FRAME.match, log.splitlines())):
        if "bngrad::" in match.group(1):
            return False
        if re.match(r"mlir::detail::Parser::parse\w*(Attr|Type)", match.group(1)):
            return True
    return False


def is_upstreams(fuzzer: Fuzzer, data: bytes, outcome: Outcome, llvm_bin: Path) -> str:
    """The reason why a fault is upstream's; empty if it is ours."""
    if fuzzer.target not in IR_TARGETS:
        return ""
    if outcome.signature.startswith("LLVM ERROR: Can't add pass"):
        return "mlir-opt, a pass of another op in --pass-pipeline"
    if is_in_parser(outcome.log):
        return "the parser of attributes and types"
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name)
        ir = trace / "input"
        ir.write_bytes(data.split(b"\n", 1)[1] if fuzzer.target == "ir-bytecode" and b"\n" in data else data)
        if mlir_opt_fails(llvm_bin, ir):
            return "mlir-opt, parsing and verifying"
        if mlir_opt_fails(llvm_bin, ir, "--mlir-print-op-generic"):
            return "mlir-opt, printing"
        fuzzer.run(data, trace)
        before = trace / "before.mlir"
        if not before.exists():
            return ""
        if mlir_opt_fails(llvm_bin, before):
            return "mlir-opt, verifying"
        pipeline = (trace / "pass").read_text().strip()
        failed = innermost(pipeline)
        if failed.startswith("bngrad-"):
            return next((f"mlir-opt --{each}" for each in ("canonicalize", "cse")
                         if mlir_opt_fails(llvm_bin, before, f"--{each}")), "")
        if mlir_opt_fails(llvm_bin, before, f"--pass-pipeline={pipeline}"):
            return f"mlir-opt --{failed}"
    return ""


def minimize(fuzzer: Fuzzer, data: bytes, signature: str, seconds: float) -> bytes:
    """Removes lines, or bytes of inputs that are not text, as long as the fault remains."""
    deadline = time.monotonic() + seconds

    def fails(candidate: bytes) -> bool:
        if fuzzer.target in IR_TARGETS:
            with tempfile.TemporaryDirectory() as name:
                outcome = fuzzer.run(candidate, Path(name))
        else:
            outcome = fuzzer.run(candidate)
        return outcome.failed and outcome.signature == signature

    keep = 0 if fuzzer.target.endswith("options") or fuzzer.target == "npy" else 1
    is_text = fuzzer.target not in ("npy", "ir-bytecode")
    units = data.splitlines(keepends=True) if is_text else [bytes([byte]) for byte in data]
    if not is_text:
        keep = data.find(b"\n") + 1 if keep else 0
    size = max(1, (len(units) - keep) // 2)
    while time.monotonic() < deadline:
        at, changed = keep, False
        while at < len(units) and time.monotonic() < deadline:
            candidate = units[:at] + units[at + size:]
            if fails(b"".join(candidate)):
                units, changed = candidate, True
            else:
                at += size
        if size == 1 and not changed:
            break
        size = max(1, size // 2)
    return b"".join(units)


def name_of(signature: str) -> str:
    """A file name from words of the signature and a digest."""
    words = re.sub(r"[^a-z0-9]+", "-", signature.lower()).strip("-")[:48].strip("-")
    return f"{words}-{hashlib.sha256(signature.encode()).hexdigest()[:8]}"
