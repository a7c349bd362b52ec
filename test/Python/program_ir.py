"""The IR of programs after each stage, schedules, and passes on text.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import os
import pathlib
import re
import subprocess

import bngrad
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ["BNGRAD_BUILD"]) / "bin"
GRADIENT = """
func.func @gradient(%dy: tensor<4x8x16xf32>, %x: tensor<4x8x16xf32>, %mean: tensor<8xf32>, %variance: tensor<8xf32>)
    -> (tensor<4x8x16xf32>, tensor<8xf32>, tensor<8xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<4x8x16xf32>)
      input(%x : tensor<4x8x16xf32>) mean(%mean : tensor<8xf32>) variance(%variance : tensor<8xf32>)
      {epsilon = 1.0e-3 : f64} : tensor<4x8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %dx, %dscale, %doffset : tensor<4x8x16xf32>, tensor<8xf32>, tensor<8xf32>
}
"""


@pytest.fixture(scope="module")
def program():
    return bngrad.compile(GRADIENT)


@pytest.mark.parametrize("stage, present, absent", [
    ("import", ["bngrad.batch_norm_backward"], ["linalg.generic"]),
    ("partition", ["bngrad.batch_norm_backward"], ["linalg.generic"]),
    ("decompose", ["linalg.generic", "tensor<4x8x16xf32>"], ["bngrad.batch_norm_backward"]),
    ("fuse", ["linalg.generic"], ["scf.execute_region"]),
    ("group", ["scf.execute_region", "#bngrad.schedule<"], ["memref"]),
    ("bufferize", ["memref<4x8x16xf32>", "linalg.generic"], ["llvm.func"]),
    ("apply", ["scf.for", "vector<"], ["linalg.generic"]),
    ("lower", ["llvm.func @gradient_checked(", "llvm.func @gradient_infer(", "llvm.target_triple"], ["func.func"]),
    ("llvm", ["define i32 @gradient_checked(", "target triple"], ["llvm.func"]),
    ("assembly", [".globl\tgradient_checked", "ret"], ["define "]),
])
def test_stages(program, stage, present, absent):
    text = program.ir(stage)
    # All results are static, so that none is inferred.
    assert all(part in text for part in present if "infer" not in part)
    assert not any(part in text for part in absent)


def test_stages_are_those_of_the_tool(program, tmp_path):
    """With the options by which a program is compiled."""
    (tmp_path / "gradient.mlir").write_text(GRADIENT)
    for stage in ("import", "partition", "decompose", "fuse", "group", "bufferize", "apply"):
        expected = subprocess.run(
            [TOOLS / "bngrad-opt", tmp_path / "gradient.mlir", f"--bngrad-cpu-pipeline=threads=-1 stop-after={stage}"],
            check=True, capture_output=True, text=True).stdout
        assert program.ir(stage).rstrip() == expected.rstrip()


def test_schedule(program):
    chosen, = program.schedule
    assert re.fullmatch(r"#bngrad\.schedule<\w+.*>", chosen)
    assert f"bngrad.schedule = {chosen}" in program.ir("group")
    given = bngrad.compile(GRADIENT, schedule=chosen)
    assert given.schedule == (chosen,) and given.ir("apply") == program.ir("apply")


def test_unknown_stages(program):
    for stage, text in [("ptx", "expected target to be cuda for ptx, got cpu"),
                        ("loops", "expected stage to be import, partition, decompose, .*, assembly or ptx, got 'loops'")]:
        with pytest.raises(bngrad.CompileError, match=text):
            program.ir(stage)
    with pytest.raises(bngrad.DtypeError, match="stage: expected str, got int"):
        program.ir(1)


def test_names_that_c_reserves():
    """Stages have the name of the function; the entries have another one."""
    program = bngrad.compile(GRADIENT.replace("@gradient", "@main"))
    assert program.entry == "main"
    assert "llvm.func @program_checked(" in program.ir("lower")


PASSES = [
    (["--bngrad-decompose"], "builtin.module(func.func(bngrad-decompose))"),
    (["--bngrad-cpu-pipeline=stop-after=group threads=2"], "builtin.module(bngrad-cpu-pipeline{stop-after=group threads=2})"),
    (["--bngrad-to-linalg", "-canonicalize", "--one-shot-bufferize=bufferize-function-boundaries"],
     "builtin.module(bngrad-to-linalg,canonicalize,one-shot-bufferize{bufferize-function-boundaries})"),
    ([], "builtin.module()"),
]


@pytest.mark.parametrize("flags, pipeline", PASSES, ids=[case[1][15:40] for case in PASSES])
def test_passes_are_those_of_the_tool(flags, pipeline, tmp_path):
    (tmp_path / "gradient.mlir").write_text(GRADIENT)
    expected = subprocess.run([TOOLS / "bngrad-opt", tmp_path / "gradient.mlir", *flags], check=True,
                              capture_output=True, text=True).stdout
    assert bngrad.opt(GRADIENT, flags).rstrip() == expected.rstrip()
    assert bngrad.opt(GRADIENT.encode(), pipeline).rstrip() == expected.rstrip()


@pytest.mark.parametrize("passes, text", [
    (["--bngrad-nothing"], "expected a pass such as --bngrad-decompose, got '--bngrad-nothing'"),
    (["canonicalize"], "expected a pass such as --bngrad-decompose, got 'canonicalize'"),
    (["--bngrad-cpu-pipeline=stop-after=never"],
     "--bngrad-cpu-pipeline=stop-after=never: expected options of --bngrad-cpu-pipeline, got 'stop-after=never'"),
    (["--canonicalize=fast=1"], "--canonicalize=fast=1: "),
    (["--canonicalize=max-iterations=x"],
     "--canonicalize=max-iterations=x: expected options of --canonicalize, got 'max-iterations=x'"),
    ("builtin.module(nothing)", "'nothing' does not refer to a registered pass or pass pipeline"),
    ("builtin.module(canonicalize", "passes: "),
    ("builtin.module(" * 30000 + ")" * 30000, "passes: expected brackets, aliases and operators to be nested at most 256"),
    (["--bngrad-cpu-pipeline=schedule=" + "[" * 30000],
     "--bngrad-cpu-pipeline: expected brackets, aliases and operators to be nested at most 256 deep, got more"),
    ("func.func(canonicalize)", "expected passes on builtin.module, got 'func.func'"),
], ids=lambda value: str(value)[:40])
def test_wrong_passes(passes, text, capfd):
    with pytest.raises(bngrad.CompileError) as caught:
        bngrad.opt(GRADIENT, passes)
    assert text in str(caught.value)
    capfd.readouterr()


def test_errors_of_passes():
    with pytest.raises(bngrad.CompileError, match="<mlir>:1:10: error: .* unregistered dialect"):
        bngrad.opt('"foo.bar"() : () -> ()', [])
    assert "foo.bar" in bngrad.opt('"foo.bar"() : () -> ()', ["--allow-unregistered-dialect", "--cse"])
    with pytest.raises(bngrad.DtypeError, match="passes: expected a pipeline or a list of flags, got int"):
        bngrad.opt(GRADIENT, 1)
    with pytest.raises(bngrad.DtypeError, match="text: expected MLIR as str or bytes, got NoneType"):
        bngrad.opt(None, [])
    failing = "func.func @f(%x: tensor<2xf32>) -> f32 {\n %0 = \"test.op\"() : () -> f32 \n return %0 : f32\n}"
    with pytest.raises(bngrad.CompileError) as caught:
        bngrad.opt(failing, ["--allow-unregistered-dialect", "--bngrad-cpu-pipeline"])
    assert caught.value.diagnostics


def test_documentation():
    """The examples of docs/python.md run."""
    section = (ROOT / "docs/python.md").read_text().split("\n## Programs\n")[1]
    names = {"text": GRADIENT}
    for program in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(program, names)
    assert names["total"].shape == (32, 64, 100) and names["grad_scale"].shape == (64,)
    assert all(f"`{member}" in section for member in ("entry", "target", "arguments", "results", "signature", "schedule"))
