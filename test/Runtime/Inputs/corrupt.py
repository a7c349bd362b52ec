"""Damages the only file of a cache: flips a byte, cuts it short, empties it, or puts a pipe or a device in its place."""

import os
import pathlib
import sys

folder, how = sys.argv[1:]
path = next(pathlib.Path(folder).glob("llvmcache-*"))
data = bytearray(path.read_bytes())
if how in ("pipe", "device"):
    path.unlink()
    os.mkfifo(path) if how == "pipe" else path.symlink_to("/dev/zero")
    sys.exit()
if how == "flip":
    data[-1000] ^= 1
elif how == "cut":
    del data[-1000:]
else:
    data.clear()
path.write_bytes(data)
