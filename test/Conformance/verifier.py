"""Cases of verifiers: valid or invalid operands, without values."""

import re
from typing import Any, Dict, List, Optional, Tuple

from cases import SchemaError
from programs import (Failure, Gradient, Outcome, Tools, bngrad_op,
                      bngrad_program, stablehlo_program, tensor_type)

NAMES = {"gamma": "scale", "delta": "grad_output"}
ORDER = ("grad_output", "input", "scale", "mean", "variance")
UNUSED = ("beta", "bias")
UNKNOWN_RANK = 4  # of data if no operand has a rank

Size = Optional[int]


def read_sizes(name: str, value: Any) -> Optional[List[Size]]:
    """Sizes, None for `?`; None for a dynamic rank."""
    if value == "dynamic rank":
        return None
    if not isinstance(value, list) or not all(
            size == "?" or isinstance(size, int) and size >= 0
            for size in value):
        raise SchemaError(f"expected {name} to be sizes, ? or dynamic rank, "
                          f"got {value!r}")
    return [None if size == "?" else size for size in value]


def read_shapes(types: Dict[str, Any]) -> Tuple[Dict[str, str], List[str]]:
    """Types from lists of sizes. A dynamic rank becomes dynamic sizes, with
    the rank of another operand of the kind; results are all dynamic."""
    shapes = {NAMES.get(name, name): read_sizes(name, value)
              for name, value in types.items() if name != "element_types"}
    elements = types.get("element_types", "f32")
    rank = next((len(shapes[name]) for name in ("input", "grad_output")
                 if shapes.get(name) is not None), UNKNOWN_RANK)

    def element(name: str) -> str:
        if isinstance(elements, str):
            return elements
        spelled = next((old for old, new in NAMES.items() if new == name), name)
        found = elements.get(name, elements.get(spelled,
                                                elements.get("others")))
        if found is None:
            raise SchemaError(f"expected an element type of {name}")
        return found

    operands = {}
    for name, shape in shapes.items():
        if shape is None:
            shape = [None] * (rank if name in ("input", "grad_output") else 1)
        operands[name] = tensor_type(shape, element(name))
    channel = tensor_type([None], element("mean"))
    return operands, [tensor_type([None] * rank, element("input")), channel,
                      channel]


def read_types(case: Dict[str, Any],
               others: List[Any]) -> Tuple[Dict[str, str], List[str]]:
    """The types of the operands by name, and those of the three results."""
    types = case["types"]
    same = re.fullmatch(r"as (\w+)", str(types.get("shapes", "")))
    if same and "element_type" in types:
        other = next((other for other in others if isinstance(other, dict)
                      and other.get("name") == same[1]
                      and "input" in other.get("types", {})), None)
        if other is None:
            raise SchemaError(f"expected a case {same[1]} in the same file")
        operands, results = read_types(other, [])

        def replace(type: str) -> str:
            return re.sub(r"[^x<]+>$",
                          lambda _: f"{types['element_type']}>", type)
        return ({name: replace(type) for name, type in operands.items()},
                [replace(type) for type in results])
    texts = {key: value for key, value in types.items() if key != "results"}
    if "results" in types:
        if not all(isinstance(text, str) for text in texts.values()) or len(
                types["results"]) != 3:
            raise SchemaError("expected types of operands and of three results")
        operands = {NAMES.get(name, name): text for name, text in texts.items()}
        results = types["results"]
    else:
        operands, results = read_shapes(texts)
    for name in UNUSED:
        operands.pop(name, None)
    if operands.keys() != set(ORDER):
        raise SchemaError(f"expected types of {', '.join(ORDER)}, got "
                          f"{', '.join(sorted(operands)) or 'none'}")
    return {name: operands[name] for name in ORDER}, results


def read_gradient(case: Dict[str, Any], others: List[Any]) -> Gradient:
    if not isinstance(case["types"], dict) or not isinstance(
            case.get("attributes"), dict):
        raise SchemaError("expected types and attributes to have names")
    operands, results = read_types(case, others)
    attributes = case["attributes"]
    if not isinstance(attributes.get("feature_index"), int):
        raise SchemaError("expected feature_index to be a dim")
    names = ("grad_input", "grad_scale", "grad_offset")
    return Gradient(operands, dict(zip(names, results)), names,
                    (attributes["feature_index"],),
                    float(attributes.get("epsilon", 0.0)))


def require_error(outcome: Outcome) -> None:
    """Exactly one error, from an op; a syntax error would be the test's own."""
    errors = re.findall(r"^\S+: error: (.*)$", outcome.errors, re.M)
    if outcome.status == 0:
        raise Failure("expected an error, got none")
    if len(errors) != 1:
        raise Failure("expected one error, got " + (
            f"{len(errors)}: {'; '.join(errors)}" if errors else "none"))
    if not re.match(r"'[\w.]+' op ", errors[0]):
        raise Failure(f"expected an error of the op, got: {errors[0]}")


def require_success(outcome: Outcome) -> str:
    if outcome.status != 0 or outcome.errors:
        lines = [line for line in outcome.errors.splitlines() if line]
        raise Failure(f"expected no error, got: {(lines or ['none'])[0]}")
    return outcome.output


def check_inference(gradient: Gradient, sizes: str, tools: Tools) -> None:
    """`sizes` like `dynamic rank, {?,5}, {5}` after canonicalization."""
    output = require_success(tools.call("bngrad-opt", ["--canonicalize"],
                                        bngrad_program(gradient)))
    found = re.search(r"= bngrad\.batch_norm_backward .* : (.*)$", output, re.M)
    types = found[1].split(", ") if found else []
    expected = []
    for type, shape in zip(gradient.results.values(),
                           re.findall(r"\{([^}]*)\}|dynamic rank", sizes)):
        element = re.search(r"([^x<]+)>$", type)[1]
        expected.append(tensor_type(
            [None if size == "?" else int(size) for size in shape.split(",")],
            element) if shape else type)
    if types != expected:
        raise Failure(f"expected result types {', '.join(expected)}, "
                      f"got {', '.join(types) or 'none'}")


def check_speculation(gradient: Gradient, is_speculatable: bool,
                      tools: Tools) -> None:
    """Only a speculatable op leaves a loop that may have no iterations."""
    arguments = ", ".join(f"%{name}: {type}"
                          for name, type in gradient.operands.items())
    output = require_success(tools.call(
        "bngrad-opt", ["--loop-invariant-code-motion"],
        f"func.func @f({arguments}, %n: index) {{\n"
        f"  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
        f"  scf.for %i = %c0 to %n step %c1 {{\n{bngrad_op(gradient)}\n  }}\n"
        f"  return\n}}\n"))
    is_hoisted = -1 < output.find("bngrad.") < output.find("scf.for")
    if is_hoisted != is_speculatable:
        word = "speculatable" if is_speculatable else "not speculatable"
        raise Failure(f"expected the op to be {word}, got the opposite")


def check_case(case: Dict[str, Any], others: List[Any], tools: Tools) -> None:
    """`others` are the cases of the same file, which `case` may refer to."""
    gradient = read_gradient(case, others)
    expect = case["expect"]
    if not isinstance(expect, str) or not re.match(r"(valid|error)\b", expect):
        raise SchemaError(f"expected expect to be valid or error, "
                          f"got {expect!r}")
    is_valid = expect.startswith("valid")
    require = require_success if is_valid else require_error
    require(tools.call("bngrad-opt", [], bngrad_program(gradient)))

    if re.search("stablehlo|mhlo|xla", str(case.get("source_repo"))):
        for dialect in ("stablehlo", "mhlo"):
            try:
                outcome = tools.call(
                    "bngrad-opt",
                    ["--allow-unregistered-dialect", "--bngrad-import"],
                    stablehlo_program(gradient, dialect))
                require(outcome)
                if is_valid and (
                        f"{dialect}.batch_norm_grad" in outcome.output
                        or "bngrad.batch_norm_backward" not in outcome.output):
                    raise Failure("expected the bngrad op, got no import")
            except Failure as failure:
                raise Failure(f"{dialect}: {failure}") from None
    if not is_valid:
        return
    results = re.search(r"results \[(.*)\]", expect)
    if results:
        check_inference(gradient, results[1], tools)
    if "speculatable" in expect:
        check_speculation(gradient, "not speculatable" not in expect, tools)
