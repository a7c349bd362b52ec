#!/usr/bin/env python3
"""Prints `PASSED FAILED SKIPPED` of a result file of lit (`lit -o FILE`)."""

import json
import sys


def main() -> int:
    with open(sys.argv[1]) as file:
        codes = [test["code"] for test in json.load(file)["tests"]]
    passed = sum(code in ("PASS", "XFAIL", "FLAKYPASS") for code in codes)
    skipped = sum(code in ("UNSUPPORTED", "SKIPPED", "EXCLUDED") for code in codes)
    print(passed, len(codes) - passed - skipped, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
