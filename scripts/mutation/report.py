"""The list of equivalent mutants and the page of the score."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from pathlib import Path

from sites import Mutant

OPEN = "open: "

HEAD = """# Mutation score

Written on {date} by `{command}`. [testing.md](testing.md#mutants) describes the mutants and how they are run.

Of {pool} mutants of {files} files, {share} were made, and {compiled} of these compile. The tests detect {killed}.
Of the others, {equivalent} are equivalent to the original, for the reasons in `test/mutants-equivalent.txt`, and
{open} are undetected; no test reaches {unreached} of these. The score is the percentage of non-equivalent mutants
that the tests detect. Tests were added for mutants that survived earlier runs, so a new sample would score lower.

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


def find_stale(listed: dict[str, str], pool: list[Mutant], root: Path) -> list[str]:
    """Listed keys that are no mutants any more: of files of the pool, or of files that `root` lacks."""
    keys, files = {m.key for m in pool}, {m.file for m in pool}

    def is_stale(key: str) -> bool:
        file = key.split(" ## ")[0]
        return file in files and key not in keys or not (root / file).exists()

    return [key for key in listed if is_stale(key)]


def write(path: Path, command: str, pool: int, share: list[Mutant], results: dict[str, dict],
          listed: dict[str, str]) -> None:
    """Writes the score of a share of `pool` mutants."""
    rows: dict[str, Counter] = defaultdict(Counter)
    survivors: dict[str, list[str]] = defaultdict(list)
    unreached = 0
    for mutant in share:
        status = results.get(mutant.key, {}).get("status", "not run")
        if status == "does not compile":
            continue
        reason = listed.get(mutant.key, OPEN + "not looked at")
        kind = "killed" if status == "killed" else "open" if reason.startswith(OPEN) else "equivalent"
        rows[mutant.file][kind] += 1
        if kind == "open":
            unreached += status == "not reached"
            edit = mutant.key.split(" ## ", 1)[1]
            survivors[mutant.file].append(f"- `{edit}`: {reason[len(OPEN):]}")
    total = sum(rows.values(), Counter())
    text = HEAD.format(date=datetime.date.today(), command=command, pool=pool, files=len(rows), share=len(share),
                       compiled=sum(total.values()), unreached=unreached,
                       **{kind: total[kind] for kind in ("killed", "equivalent", "open")})
    text += "| file | mutants | killed | equivalent | open | score |\n|---|---|---|---|---|---|\n"
    for name, row in [*sorted(rows.items()), ("all", total)]:
        text += line_of(name, row)
    if survivors:
        text += "\n## Open\n\nNot noticed, and not known to be equivalent: what a test would need comes after each.\n"
    for name in sorted(survivors):
        text += f"\n### {name}\n\n" + "\n".join(survivors[name]) + "\n"
    path.write_text(text)


def line_of(name: str, row: Counter) -> str:
    count, real = sum(row.values()), row["killed"] + row["open"]
    score = f"{100 * row['killed'] / real:.1f} %" if real else ""
    return f"| {name} | {count} | {row['killed']} | {row['equivalent']} | {row['open']} | {score} |\n"
