"""Checks properties of compiled gradients for random configurations.

Usage: properties.py BNGRAD_RUNNER BNGRAD_OPT DIRECTORY
                     [--first=N] [--count=N] [--seed=N] [--keep] [--self-test]

Results are not compared with known values, but with results of other programs,
or with a derivative (checks.py). Every program also runs with --check. The
seed determines a configuration; --seed=N runs one of them. The self-test makes
mistakes in the results; a property must report each in at least half of the
configurations with that mistake.

Prints the seeds, a line for each failure, and `N configurations, 0 failed`.
"""

import argparse
import os
import shutil
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import numpy as np

from checks import PROPERTIES, Outcome, failures
from configuration import Configuration
from mistakes import count_noticed
from runs import Runs, Tools

PROCESSES = 2


class Task(NamedTuple):
    seed: int
    tools: Tools
    directory: Path
    is_self_test: bool
    keep: bool


class Report(NamedTuple):
    seed: int
    configuration: str
    failures: List[str]
    noticed: Dict[str, Tuple[int, int]]


def check(task: Task) -> Report:
    """Runs one configuration."""
    directory = task.directory / str(task.seed)
    configuration = Configuration(task.seed)
    found: List[str] = []
    noticed: Dict[str, Tuple[int, int]] = {}
    try:
        with np.errstate(all="ignore"):
            outcome = Outcome(Runs(configuration, task.tools, directory))
            for name in PROPERTIES:
                found += failures(outcome, name)
            if task.is_self_test:
                noticed = count_noticed(outcome)
    except RuntimeError as error:
        found.append(str(error))
    except Exception:
        found.append(traceback.format_exc())
    if not task.keep:
        shutil.rmtree(directory, ignore_errors=True)
    return Report(task.seed, str(configuration), found, noticed)


def print_self_test(reports: List[Report]) -> int:
    """Returns the number of mistakes that are not noticed."""
    totals: Dict[str, List[int]] = {}
    for report in reports:
        for what, counts in report.noticed.items():
            total = totals.setdefault(what, [0, 0])
            total[0] += counts[0]
            total[1] += counts[1]
    unnoticed = 0
    for what, (noticed, made) in sorted(totals.items()):
        good = 2 * noticed >= made
        unnoticed += not good
        print(f"{'ok' if good else 'UNNOTICED'} {what}: {noticed} of {made}")
    print(f"{len(totals)} mistakes, {unnoticed} unnoticed")
    return unnoticed if totals else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("opt")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep", action="store_true",
                        help="keep programs, arguments and results")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    if options.seed is not None:
        seeds = [options.seed]
    print(f"seeds {seeds[0]} to {seeds[-1]}", flush=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    tasks = [Task(seed, Tools(options.runner, options.opt), options.directory,
                  options.self_test, options.keep) for seed in seeds]
    reports = []
    with ProcessPoolExecutor(PROCESSES) as pool:
        for report in pool.map(check, tasks):
            reports.append(report)
            for failure in report.failures:
                print(f"FAILED --seed={report.seed} "
                      f"({report.configuration}): {failure}", flush=True)
    unnoticed = print_self_test(reports) if options.self_test else 0
    failed = sum(bool(report.failures) for report in reports)
    print(f"{len(reports)} configurations, {failed} failed")
    return 1 if failed or unnoticed or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
