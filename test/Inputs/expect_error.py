"""expect_error.py MESSAGE COMMAND...: COMMAND must fail in the way that our tools document.

That is: exit status 1, nothing on standard output, and on standard error one
line `<tool>: error: MESSAGE`, where `...` in MESSAGE means any text.
"""

import os
import re
import subprocess
import sys

message, command = sys.argv[1], sys.argv[2:]
run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
tool = next(name for name in map(os.path.basename, command) if name.startswith("bngrad-"))
pattern = ".+".join(map(re.escape, message.split("...")))
problems = []
if run.returncode != 1:
    problems.append(f"expected exit status 1, got {run.returncode}")
if run.stdout:
    problems.append(f"expected nothing on standard output, got:\n{run.stdout}")
if not re.fullmatch(f"{tool}: error: {pattern}\n", run.stderr):
    problems.append(f"expected one line '{tool}: error: {message}', got:\n{run.stderr}")
sys.exit("\n".join(problems) or 0)
