"""The generator of mutants on a program with planted survivors.

Inputs/planted.cpp names the mutants that its tests cannot notice. All mutants
of it are compiled in at once, the tests run by lit: just those survive, and one
that C++ does not take is dropped.

Usage: planted.py SCRIPTS LIT COMPILER FOLDER
"""

import subprocess
import sys
from pathlib import Path

scripts, lit_path, compiler, folder = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
sys.path.insert(0, scripts)

import runs
import schemata
import sites

CONFIG = """
import lit.formats
config.name, config.suffixes = "Planted", [".test"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_exec_root = os.path.dirname(__file__)
"""
TEST = "RUN: {program} {name} | diff - {expected}\n"


def build(mutants: list[sites.Mutant], data: bytes) -> Path:
    """Builds as schemata.Schemata does, with the compiler alone."""
    tree = schemata.Schemata(folder, folder)
    schemata.put(tree.header, schemata.HEADER.encode())
    program = folder / "planted"
    for radius in range(20):
        kept = [m for m in mutants if m.number not in tree.dropped]
        writer = schemata.Writer(data, kept)
        schemata.put(tree.source / "planted.cpp", writer.write())
        tree.build.mkdir(parents=True, exist_ok=True)
        result = subprocess.run([compiler, "-std=c++17", *schemata.FLAGS, "-include", str(tree.header),
                                 "../planted.cpp", "-o", str(program)], cwd=tree.build, capture_output=True, text=True)
        if result.returncode == 0:
            mutants[:] = kept
            return program
        assert tree._drop(result.stderr, {"planted.cpp": writer}, radius), result.stderr
    raise AssertionError("the mutated program does not build")


def write_tests(program: Path) -> None:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "lit.cfg.py").write_text("import os\n" + CONFIG)
    for name in ("first", "second"):
        expected = folder / f"{name}.expected"
        expected.write_bytes(subprocess.run([program, name], capture_output=True, check=True).stdout)
        (folder / "tests" / f"{name}.test").write_text(TEST.format(program=program, name=name, expected=expected))


def main() -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = (Path(__file__).parent / "Inputs" / "planted.cpp").read_bytes()
    mutants = sites.find_mutants("planted.cpp", data, {"Shape": ["Round", "Square"]}, {})
    # main is the test.
    mutants = [m for m in mutants if m.function != "main"]
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    made = len(mutants)
    program = build(mutants, data)
    print(f"made {made > 30}, kinds {sorted({m.kind for m in mutants})}")
    print(f"dropped {made - len(mutants)}")
    write_tests(program)
    suite = runs.Suite(lit_path, folder / "tests", folder)
    recordings = {name: runs.record(suite, name, made) for name in suite.tests}
    assert all(r.outcome == runs.PASSED for r in recordings.values()), recordings
    survivors, unreached = [], []
    for mutant in mutants:
        reaching = [n for n, r in recordings.items() if mutant.number in r.reached]
        outcomes = [suite.run(n, {"BNGRAD_MUTANT": str(mutant.number)}, 20)[0] for n in reaching]
        if not reaching:
            unreached.append(mutant)
        if all(outcome == runs.PASSED for outcome in outcomes):
            survivors.append(mutant)
    planted = [(line.split("//")[0].strip(), edit.strip())
               for line in data.decode().split("\n") if "// SURVIVES" in line
               for edit in line.split("SURVIVES")[1].split("; ")]
    found = [(m.line.split("//")[0].strip(), m.edit.rstrip(";") if m.edit.startswith("drop") else m.edit)
             for m in survivors]
    planted = [(line, edit.rstrip(";")) for line, edit in planted]
    for what in sorted(set(planted) - set(found)):
        print(f"NOTICED, BUT PLANTED: {what}")
    for what in sorted(set(found) - set(planted)):
        print(f"SURVIVES, BUT NOT PLANTED: {what}")
    print(f"not reached: {sorted({m.function for m in unreached})}")
    print(f"survivors as planted: {sorted(found) == sorted(planted)}")


if __name__ == "__main__":
    main()
