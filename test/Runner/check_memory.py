"""check_memory.py [--long] COMMAND...: with any memory limit COMMAND succeeds, or fails in the way that our tools
document. The limits differ by 10 %, or by 2.5 % with --long, and where no limit of the larger steps lets the tool itself
fail.

That is: exit status 1 and on standard error one line `<tool>: error: out of memory...`, or one that names the
unavailable resource. If there is too little memory for the loader, the loader reports it with status 127, or the
kernel by a signal. The initializers of LLVM's shared library end the process.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

is_long = sys.argv[1] == "--long"
command = sys.argv[1 + is_long:]
program = next(word for word in command if "bngrad-" in word)
tool = os.path.basename(program)
# Threads of libomp allocate memory, and end the process on failure.
environment = {**os.environ, "OMP_NUM_THREADS": "1"}


def run_limited(arguments):
    return subprocess.run(
        ["prlimit", f"--as={bytes}", *arguments], capture_output=True, text=True, env=environment, timeout=300
    )


def ends_in_initializer(run):
    """Whether LLVM ended the process, and would if there were nothing to do."""
    aborts = run.returncode == -signal.SIGABRT and run.stderr.startswith("LLVM ERROR: out of memory\n")
    return aborts and run_limited([program, "--version"]).returncode == run.returncode


FINE, COARSE = (41, 40), (11, 10)
step = FINE if is_long else COARSE
bytes, numFailures = 80 << 20, 0
last = bytes
while bytes < 1 << 40:
    run = run_limited(command)
    if run.returncode == 0:
        if numFailures or step == FINE:
            break
        bytes, step = last, FINE
        continue
    # The kernel, which has no memory for the program itself, sends a signal.
    is_loader = (run.returncode == 127 and "error while loading shared libraries" in run.stderr) or (
        run.returncode == -signal.SIGSEGV and bytes < os.path.getsize(shutil.which(command[0]))
    )
    if not is_loader and not ends_in_initializer(run):
        numFailures += 1
        if run.returncode != 1 or not re.fullmatch(f"{tool}: error: .*\n", run.stderr):
            sys.exit(f"with {bytes} bytes: expected status 1 and one line, got {run.returncode} and\n{run.stderr}")
    last = bytes
    bytes = bytes * step[0] // step[1]
else:
    sys.exit(f"expected to succeed with 2^40 bytes, got\n{run.stderr}")
print(f"succeeds, fails with less: {'yes' if numFailures else 'no'}")
