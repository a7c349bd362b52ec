#!/usr/bin/env python3
"""bngrad-compile, with a selection of bf16 before each store of a vector of 16-bit integers, as LLVM makes it where the
rounding is stored as bf16.

The environment variable BNGRAD_COMPILE names the tool. The output is LLVM IR.
"""

import os
import re
import subprocess
import sys

SELECT = """
  %bf16.{number} = bitcast <{lanes} x i16> {value} to <{lanes} x bfloat>
  %nan.{number} = fcmp uno <{lanes} x bfloat> %bf16.{number}, zeroinitializer
  %chosen.{number} = select <{lanes} x i1> %nan.{number}, <{lanes} x bfloat> splat (bfloat 0xR7FC0), <{lanes} x bfloat> %bf16.{number}
  %bits.{number} = bitcast <{lanes} x bfloat> %chosen.{number} to <{lanes} x i16>
  store <{lanes} x i16> %bits.{number},"""

subprocess.run([os.environ["BNGRAD_COMPILE"], *sys.argv[1:]], check=True)
path = sys.argv[sys.argv.index("-o") + 1]
with open(path, encoding="utf-8") as file:
    text = file.read()
text, count = re.subn(r"\n  store <(\d+) x i16> (%[\w.]+),",
                      lambda match: SELECT.format(lanes=match[1], value=match[2], number=match[2][1:]), text)
assert count > 0, "expected a store of a vector of i16"
with open(path, "w", encoding="utf-8") as file:
    file.write(text)
