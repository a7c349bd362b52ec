"""Damages the only file of a cache: flips a byte, cuts it short, or empties it."""

import pathlib
import sys

folder, how = sys.argv[1:]
path = next(pathlib.Path(folder).glob("llvmcache-*"))
data = bytearray(path.read_bytes())
if how == "flip":
    data[-1000] ^= 1
elif how == "cut":
    del data[-1000:]
else:
    data.clear()
path.write_bytes(data)
