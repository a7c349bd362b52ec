#!/usr/bin/env python3
"""bngrad-compile, with a selection of bf16 before each store of a vector of integers, as LLVM makes it where the rounding
is stored as bf16.

The environment variable BNGRAD_COMPILE names the tool. The output is LLVM IR.
"""

import os
import re
import subprocess
import sys

SELECT = """
  %bf16.{number} = bitcast <{lanes} x {type}> {value} to <{count} x bfloat>
  %nan.{number} = fcmp uno <{count} x bfloat> %bf16.{number}, zeroinitializer
  %chosen.{number} = select <{count} x i1> %nan.{number}, <{count} x bfloat> zeroinitializer, <{count} x bfloat> %bf16.{number}
  %bits.{number} = bitcast <{count} x bfloat> %chosen.{number} to <{lanes} x {type}>
  store <{lanes} x {type}> %bits.{number},"""


def plant(store):
    lanes, type, value = store.groups()
    count = int(lanes) * int(type[1:]) // 16
    return SELECT.format(lanes=lanes, type=type, value=value, count=count, number=value[1:])


subprocess.run([os.environ["BNGRAD_COMPILE"], *sys.argv[1:]], check=True)
path = sys.argv[sys.argv.index("-o") + 1]
with open(path, encoding="utf-8") as file:
    text = file.read()
text, count = re.subn(r"\n  store <(\d+) x (i16|i32)> (%[\w.]+),", plant, text)
assert count > 0, "expected a store of a vector of integers"
with open(path, "w", encoding="utf-8") as file:
    file.write(text)
