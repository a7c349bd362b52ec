"""Runs each tool on bytecode of every kind, on options, and on files that MLIR reads, that are nested deeply.

Usage: nesting.py FOLDER
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Inputs"))
from deep_bytecode import KINDS, make

LIMIT = 256
SUBJECTS = {"isolated": "regions", "regions": "regions", "text": "brackets, aliases and operators"}


def run(tool: str, bytecode: bytes, *options: str) -> subprocess.CompletedProcess:
    file = folder / "input.mlirbc"
    file.write_bytes(bytecode)
    return subprocess.run([tool, *options, str(file)], capture_output=True, text=True, timeout=60, check=False)


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
opt_options = ("--allow-unregistered-dialect", "-o", "/dev/null")
for kind in KINDS:
    subject = SUBJECTS.get(kind, "attributes and types")
    for tool, options in [("bngrad-opt", opt_options), ("bngrad-opt", (*opt_options, "--split-input-file")),
                          ("bngrad-runner", ()), ("bngrad-compile", ("-o", str(folder / "out.o")))]:
        for depth in (LIMIT + 5, 30000) if tool == "bngrad-opt" else (30000,):
            result = run(tool, make(kind, depth), *options)
            lines = result.stderr.splitlines()
            assert result.returncode == 1 and len(lines) == 1, (kind, depth, tool, result)
            assert lines[0].startswith(f"{tool}: error: ") and lines[0].endswith(
                f": expected {subject} to be nested at most {LIMIT} deep, got more"), lines
    if kind != "cycle":
        result = run("bngrad-opt", make(kind, LIMIT - 5), *opt_options)
        assert result.returncode == 0 and not result.stderr, (kind, result)

# MLIR's reader would write beyond its table of attributes.
for tool, options in [("bngrad-opt", opt_options), ("bngrad-runner", ())]:
    for size in (2, 100000):
        result = run(tool, make("excess", size), *options)
        assert result.returncode == 1 and result.stderr == (
            f"{tool}: error: {folder / 'input.mlirbc'}: expected as many attributes and types in groups of the bytecode "
            "as it declares, got more\n"), result
    result = run(tool, make("excess", 1), *options)
    assert "groups" not in result.stderr, result

text = folder / "input.mlir"
text.write_text("func.func @f() {\n  return\n}\n")
for command, name in [(("bngrad-opt", "--pass-pipeline=" + "builtin.module(" * 5000 + ")" * 5000), "--pass-pipeline"),
                      (("bngrad-opt", "--bngrad-cpu-pipeline=schedule=" + "[" * 30000), "--bngrad-cpu-pipeline"),
                      (("bngrad-runner", "--schedule=" + "[" * 30000), "--schedule"),
                      (("bngrad-compile", "-o", str(folder / "out.o"), "--schedule=" + "[" * 30000), "--schedule")]:
    result = subprocess.run([*command, str(text)], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1 and result.stderr == (
        f"{command[0]}: error: {name}: expected brackets, aliases and operators to be nested at most {LIMIT} deep, got "
        "more\n"), (name, result.stderr[:300])


def nest(depth: int) -> str:
    return "builtin.module(" * depth + "canonicalize" + ")" * depth


def write(name: str, content: str) -> Path:
    file = folder / name
    file.write_text(content)
    return file


def reproduce(depth: int) -> str:
    """A module with a pipeline, as --mlir-generate-reproducer prints it."""
    return f'''module {{}}
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{nest(depth)}",
      disable_threading: true,
      verify_each: true
    }}
  }}
#-}}
'''


# Files that MLIR reads beside the input, and the pipeline of a reproducer.
deep = write("deep.mlir", "module {" * 5000 + "}" * 5000)
flat = write("flat.mlir", "module attributes {transform.with_named_sequence} {}")
libraries = folder / "libraries"
libraries.mkdir(exist_ok=True)
(libraries / "deep.mlir").write_text(deep.read_text())
preload = "--transform-preload-library=transform-library-paths="
for name, options in [
        ("pipeline of the reproducer", ["--run-reproducer", write("reproducer.mlir", reproduce(5000))]),
        ("pipeline of the reproducer", ["--run-reproducer", "--split-input-file",
                                        write("split.mlir", "module {}\n// -----\n" + reproduce(5000))]),
        ("--pass-pipeline", ["@" + str(write("arguments", f"--pass-pipeline='{nest(5000)}'")), text]),
        (f"{deep}:1:2056", [f"--irdl-file={deep}", text]),
        (f"{deep}:1:2056", [f"{preload}{flat},{deep}", text]),
        (f"{libraries / 'deep.mlir'}:1:2056", [preload + str(libraries), text])]:
    result = subprocess.run(["bngrad-opt", *options], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1 and result.stderr == (
        f"bngrad-opt: error: {name}: expected brackets, aliases and operators to be nested at most {LIMIT} deep, got "
        "more\n"), (name, result.stderr[:300])
for options in [["--run-reproducer", write("reproducer.mlir", reproduce(1))], [f"--irdl-file={flat}", text],
                ["@" + str(write("arguments", "--canonicalize")), text], [preload + str(flat), text]]:
    result = subprocess.run(["bngrad-opt", *options], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, (options, result.stderr[:300])
