"""check_memory.py COMMAND...: with any amount of memory COMMAND succeeds, or fails as our tools promise.

That is: exit status 1 and on standard error one line `<tool>: error: out of memory...`, or one that says what the
system did not give. Below what the loader needs it says so itself, with status 127.
"""

import os
import re
import subprocess
import sys

command = sys.argv[1:]
tool = os.path.basename(next(word for word in command if "bngrad-" in word))
# Threads of libomp take memory of their own, and end the process where they do not get it.
environment = {**os.environ, "OMP_NUM_THREADS": "1"}
bytes, numFailures = 100 << 20, 0
while bytes < 1 << 40:
    run = subprocess.run(
        ["prlimit", f"--as={bytes}", *command], capture_output=True, text=True, env=environment, timeout=300
    )
    if run.returncode == 0:
        break
    is_loader = run.returncode == 127 and "error while loading shared libraries" in run.stderr
    if not is_loader:
        numFailures += 1
        if run.returncode != 1 or not re.fullmatch(f"{tool}: error: .*\n", run.stderr):
            sys.exit(f"with {bytes} bytes: expected status 1 and one line, got {run.returncode} and\n{run.stderr}")
    bytes = bytes * 21 // 20
else:
    sys.exit(f"expected to succeed with 2^40 bytes, got\n{run.stderr}")
print(f"succeeds, fails with less: {'yes' if numFailures else 'no'}")
