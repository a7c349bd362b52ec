"""Compares the tables of a document with those of standard input, which empty lines separate.

Usage: schedule_tables.py DOCUMENT. Prints the first line that is missing of each table, then `N tables, M differ`.
"""

import sys
from pathlib import Path


def main() -> None:
    document = Path(sys.argv[1]).read_text()
    lines = set(document.splitlines())
    tables = sys.stdin.read().strip().split("\n\n")
    different = [table for table in tables if f"\n\n{table}\n\n" not in document]
    for table in different:
        missing = [line for line in table.splitlines()[2:] if line not in lines]
        print(f"expected '{missing[0]}', as bngrad-opt --print-schedules=markdown prints it" if missing else
              f"expected no other row in the table '{table.splitlines()[0]}'")
    print(f"{len(tables)} tables, {len(different)} differ")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
