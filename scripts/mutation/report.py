"""The list of equivalent mutants and the page of the score."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from sites import Mutant

OPEN = "open: "

HEAD = """# Mutation score

Written by `scripts/mutants.sh --generate --report`; [testing](testing.md#mutants) says what the mutants are.
A mutant that cannot be told from the original is equivalent. The score is the share that the tests notice of
those that are not. Mutants that C++ does not take are not counted.

"""


def read_listed(path: Path) -> dict[str, str]:
    """The keys of test/mutants-equivalent.txt and why each is there."""
    listed: dict[str, str] = {}
    for line in path.read_text().split("\n") if path.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(" ## ")
        if len(fields) != 3 or not fields[2].strip():
            raise SystemExit(f"bngrad: error: {path}: expected FILE ## EDIT ## REASON, got {line!r}")
        listed[" ## ".join(fields[:2])] = fields[2]
    return listed


def find_stale(listed: dict[str, str], pool: list[Mutant]) -> list[str]:
    """What is listed of the pool's files and is no mutant any more."""
    keys, files = {m.key for m in pool}, {m.file for m in pool}
    return [key for key in listed if key.split(" ## ")[0] in files and key not in keys]


def write(path: Path, pool: list[Mutant], results: dict[str, dict], listed: dict[str, str]) -> None:
    """Writes the score of all mutants that were run and are mutants still."""
    rows: dict[str, Counter] = defaultdict(Counter)
    survivors: dict[str, list[str]] = defaultdict(list)
    for mutant in pool:
        status = results.get(mutant.key, {}).get("status", "does not compile")
        if status == "does not compile":
            continue
        reason = listed.get(mutant.key, OPEN + "not looked at")
        kind = "killed" if status == "killed" else "open" if reason.startswith(OPEN) else "equivalent"
        rows[mutant.file][kind] += 1
        if kind == "open":
            edit = mutant.key.split(" ## ", 1)[1]
            survivors[mutant.file].append(f"- `{edit}`: {reason[len(OPEN):]}")
    total = sum(rows.values(), Counter())
    text = HEAD + "| file | mutants | killed | equivalent | open | score |\n|---|---|---|---|---|---|\n"
    for name, row in [*sorted(rows.items()), ("all", total)]:
        text += line_of(name, row)
    text += "\n## Open\n\nNot noticed, and not equivalent: what is missing stands behind each.\n"
    for name in sorted(survivors):
        text += f"\n### {name}\n\n" + "\n".join(survivors[name]) + "\n"
    path.write_text(text)


def line_of(name: str, row: Counter) -> str:
    count, real = sum(row.values()), row["killed"] + row["open"]
    score = f"{100 * row['killed'] / real:.1f} %" if real else ""
    return f"| {name} | {count} | {row['killed']} | {row['equivalent']} | {row['open']} | {score} |\n"
