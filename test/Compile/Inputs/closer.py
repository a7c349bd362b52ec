"""Fails unless the number of instructions of the first assembly is closer to that of the second than of the third."""

import pathlib
import re
import sys


def count(path):
    return len(re.findall(r"^\t[a-z]", pathlib.Path(path).read_text(), re.MULTILINE))


found, expected, other = map(count, sys.argv[1:])
if abs(found - expected) >= abs(found - other):
    sys.exit(f"expected about {expected} instructions rather than {other}, got {found}")
