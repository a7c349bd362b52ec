"""many_parameters.py DIR: runs a kernel with 4104 bytes of parameters, as text of PTX 8.0 and of 8.1."""

import os
import subprocess
import sys

COUNT = 513
path = os.path.join(sys.argv[1], "many.ptx")
for version in ("8.0", "8.1"):
    parameters = ", ".join(f".param .u64 p{i}" for i in range(COUNT))
    with open(path, "w") as file:
        file.write(f".version {version}\n.target sm_80\n.address_size 64\n.visible .entry many({parameters}) {{ ret; }}\n")
    done = subprocess.run(["ptx-emulator", path, "--kernel=many", "--grid=1", "--block=1"] + ["--arg=u64:1"] * COUNT,
                          capture_output=True, text=True)
    print(version, done.returncode, done.stderr.strip())
