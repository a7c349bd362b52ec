#!/usr/bin/env python3
"""Stands for compute-sanitizer and ncu: runs the command after its own options. The
task in TOOL_HANGS does not end, that in TOOL_FINDS has a report, that in TOOL_LOSES is
not run, that in TOOL_REFUSES has no device, and the counters of that in TOOL_DENIES may not be read."""

import os
import subprocess
import sys
import time

task = os.environ["BNGRAD_GPU_ITEM"]
if task == "sanitizer/" + os.environ.get("TOOL_HANGS", ""):
    time.sleep(1000)
command = ["true"] if task == "sanitizer/" + os.environ.get("TOOL_LOSES", "") else sys.argv[sys.argv.index(os.environ["FAKE_PYTHON"]) :]
done = subprocess.run(command, capture_output=True, text=True)
is_ncu = os.path.basename(sys.argv[0]) == "ncu"
if is_ncu and task == os.environ.get("TOOL_DENIES"):
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    sys.exit(1)
sys.stderr.write(done.stderr)
sys.stdout.write(done.stdout)
if is_ncu:
    print('"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"')
    print('"","","byte","byte"')
    for _ in range(done.stdout.count("child: called")):
        print('"0","reduce_0","1,000","500"')
        print('"1","apply_0","24","12"')
    sys.exit(done.returncode)
print("========= COMPUTE-SANITIZER")
if task == "sanitizer/" + os.environ.get("TOOL_REFUSES", ""):
    print("========= Error: Device not supported. Please refer to the documentation")
    sys.exit(1)
if task == "sanitizer/" + os.environ.get("TOOL_FINDS", ""):
    print("========= Invalid __global__ write of size 4 bytes")
    sys.exit(9)
print("========= ERROR SUMMARY: 0 errors")
sys.exit(done.returncode)
