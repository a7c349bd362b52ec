"""Cases with expected values: contents of the JSON, and comparison."""

import math
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from programs import RESULTS, Failure

DATA = ("grad_output", "input", "mask")  # of the shape of input
SUMS = ("sum_dy", "sum_dy_xmu")
OPERANDS = DATA + ("scale", "mean", "variance", "inv_std", *SUMS, "count")
# Operands that other systems have and that no gradient depends on.
UNUSED = re.compile(r"(beta|bias|offset|y_pre_relu)(_unused)?$|\w+_unused$")
MODES = {"batch": "batch", "training": "batch", "train": "batch",
         "global": "global", "frozen": "global", "inference": "global",
         "eval": "global"}
DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
MIN_EXPONENTS = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}


class SchemaError(Failure):
    """An error of a case: a missing or unknown entry."""


class Tolerance(NamedTuple):
    """|actual - expected| <= max(absolute + relative * |expected|, ulps)"""
    absolute: float = 0.0
    relative: float = 0.0
    ulps: float = 0.0


class Shard(NamedTuple):
    rows: slice
    count: Optional[int]
    expected: Dict[str, np.ndarray]


class Case(NamedTuple):
    """One case; arrays in float64 (mask: bool), without absent operands."""
    operands: Dict[str, np.ndarray]
    expected: Dict[str, np.ndarray]
    feature_dims: Tuple[int, ...]
    epsilon: float
    statistics: str
    elements: List[Tuple[str, str]]  # of data and parameters, each of them is
                                     # run
    tolerance: Any
    shards: List[Shard]
    ignored: List[str]

    def channel_shape(self) -> Tuple[int, ...]:
        return tuple(self.operands["input"].shape[dim]
                     for dim in self.feature_dims)


def element_types(text: Any) -> List[str]:
    """The float types that `text` names, f16 or fp16 or float16."""
    found = re.findall(r"\b(bf|f|bfloat|float|fp)(16|32|64)\b", str(text))
    return ["bf16" if prefix.startswith("b") else "f" + bits
            for prefix, bits in found]


def numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise SchemaError(f"expected numbers as {name}") from None


def read_array(name: str, value: Any) -> np.ndarray:
    """`{"shape": [...], "data": [...]}`, row-major."""
    if not isinstance(value, dict) or not {"shape", "data"} <= value.keys():
        raise SchemaError(f"expected {name} to have shape and data")
    data, shape = numbers(name, value["data"]).ravel(), value["shape"]
    if not isinstance(shape, list) or not all(
            isinstance(size, int) and size >= 0 for size in shape):
        raise SchemaError(f"expected the shape of {name} to be sizes, "
                          f"got {shape}")
    if data.size != math.prod(shape):
        raise SchemaError(f"expected {math.prod(shape)} numbers in {name}, "
                          f"got {data.size}")
    return data.reshape(shape)


def read_feature_dims(attributes: Dict[str, Any], rank: int) -> Tuple[int, ...]:
    for key in ("feature_index", "feature_axes", "feature_dims"):
        dims = attributes.get(key)
        if dims is None:
            continue
        dims = dims if isinstance(dims, list) else [dims]
        if not all(isinstance(dim, int) and -rank <= dim < rank
                   for dim in dims):
            raise SchemaError(f"expected {key} to be dims of rank {rank}, "
                              f"got {dims}")
        return tuple(dim % rank for dim in dims)
    raise SchemaError("expected feature_index or feature_axes")


def read_elements(attributes: Dict[str, Any],
                  tolerance: Any) -> List[Tuple[str, str]]:
    """The types of the tolerance or of dtype: data, then parameters."""
    named = element_types(attributes.get("dtype", ""))
    if "dtype" in attributes and not named:
        raise SchemaError(f"expected dtype to name a float type, got "
                          f"{attributes['dtype']!r}")
    listed = [key for key in tolerance if element_types(key)] if isinstance(
        tolerance, dict) else []
    if not listed:
        return [(named[0], named[-1])] if named else [("f32", "f32")]
    return [(data, named[-1] if named and named[0] == data else data)
            for data in (element_types(key)[0] for key in listed)]


def without_kept_dims(array: np.ndarray, shape: Tuple[int, ...],
                      dims: Tuple[int, ...]) -> np.ndarray:
    """Per-channel values whose reduced dims were kept with size 1."""
    kept = tuple(size if dim in dims else 1 for dim, size in enumerate(shape))
    if array.shape != kept or len(shape) == len(dims):
        return array
    return array.reshape([shape[dim] for dim in dims])


def read_shards(value: Any, case_shape: Tuple[int, ...]) -> List[Shard]:
    shards = []
    for i, shard in enumerate(value):
        try:
            begin, end = shard["rows"]
            rows, count = slice(begin, end), shard.get("count")
        except (TypeError, ValueError, KeyError, AttributeError):
            raise SchemaError(f"expected rows in shards[{i}]") from None
        if not 0 <= begin <= end <= case_shape[0]:
            raise SchemaError(f"expected rows of shards[{i}] to be in [0, "
                              f"{case_shape[0]}], got {shard['rows']}")
        expected = {name: numbers(name, shard[name]) for name in
                    ("grad_scale", "grad_offset", *SUMS) if name in shard}
        unknown = shard.keys() - expected.keys() - {"rows", "count"}
        if unknown:
            raise SchemaError(f"unknown keys in shards[{i}]: "
                              f"{', '.join(sorted(unknown))}")
        shards.append(Shard(rows, count, expected))
    return shards


def read_statistics(attributes: Dict[str, Any]) -> str:
    mode = attributes.get("statistics", attributes.get("mode", "batch"))
    if mode not in MODES:
        raise SchemaError(f"expected statistics to be batch or global, "
                          f"got {mode!r}")
    return MODES[mode]


def read_case(case: Dict[str, Any]) -> Case:
    attributes = case.get("attributes")
    if not isinstance(attributes, dict):
        raise SchemaError("expected attributes")
    if not isinstance(case["inputs"], dict) or not isinstance(
            case["expected"], dict):
        raise SchemaError("expected inputs and expected to have names")
    given = dict(case["inputs"])
    if "mask" in case:
        given["mask"] = case["mask"]
    operands = {}
    for name, value in given.items():
        if name in OPERANDS and value is not None:
            operands[name] = read_array(name, value)
        elif name not in OPERANDS and not UNUSED.match(name):
            raise SchemaError(f"unknown input {name}")
    for name in ("grad_output", "input", "mean"):
        if name not in operands:
            raise SchemaError(f"expected an input {name}")
    statistic = attributes.get("stat_kind")
    if statistic not in (None, "variance", "inv_std"):
        raise SchemaError(f"expected stat_kind to be variance or inv_std, "
                          f"got {statistic!r}")
    statistic = statistic or ("inv_std" if "inv_std" in operands else
                              "variance")
    if statistic not in operands:
        raise SchemaError(f"expected an input {statistic}")
    operands.pop("inv_std" if statistic == "variance" else "variance", None)
    if "mask" in operands:
        operands["mask"] = operands["mask"] != 0
    if (SUMS[0] in operands) != (SUMS[1] in operands) or (
            "count" in operands and SUMS[0] not in operands):
        raise SchemaError("expected both of sum_dy and sum_dy_xmu, or neither "
                          "and no count")

    shape = operands["input"].shape
    dims = read_feature_dims(attributes, len(shape))
    expected, ignored = {}, sorted(case.get("expected_extra") or {})
    for name, value in case["expected"].items():
        name = {"grad_bias": "grad_offset"}.get(name, name)
        if name not in RESULTS + SUMS or (SUMS[0] in operands
                                          and name != "grad_input"):
            ignored.append(name)
        elif value is not None:  # null: not requested
            expected[name] = read_array(name, value)
    if not expected:
        raise SchemaError("expected at least one expected value")
    for arrays in (operands, expected):
        for name in arrays.keys() - set(DATA) - {"grad_input", "count"}:
            arrays[name] = without_kept_dims(arrays[name], shape, dims)

    epsilon = attributes.get("epsilon", 0.0)
    if not isinstance(epsilon, (int, float)):
        raise SchemaError(f"expected epsilon to be a number, got {epsilon!r}")
    tolerance = case.get("tolerance")
    result = Case(
        operands={name: operands[name] for name in OPERANDS
                  if name in operands},
        expected=expected, feature_dims=dims,
        # inv_std includes its epsilon.
        epsilon=0.0 if statistic == "inv_std" else float(epsilon),
        statistics=read_statistics(attributes),
        elements=read_elements(attributes, tolerance), tolerance=tolerance,
        shards=read_shards(case.get("shards", []), shape), ignored=ignored)
    for data, _ in result.elements:
        for name in expected:
            read_tolerance(tolerance, data, name)
    return result


def read_tolerance(tolerance: Any, element: str, output: str) -> Tolerance:
    """A number is absolute; otherwise by element type, by output or for all."""
    if isinstance(tolerance, (int, float)):
        return Tolerance(absolute=tolerance)
    if not isinstance(tolerance, dict):
        raise SchemaError("expected a tolerance")
    for key, value in tolerance.items():
        if key == output or element_types(key) == [element]:
            return read_tolerance(value, element, output)
    if not {"atol", "rtol", "ulps"} & tolerance.keys():
        raise SchemaError(f"expected atol, rtol or ulps for {output}, "
                          f"got {', '.join(sorted(tolerance)) or 'nothing'}")
    limits = {key: tolerance.get(key, 0) for key in ("atol", "rtol", "ulps")}
    # Literals that lost digits to cancellation differ from the exact value by
    # more than the given ulps; the note then suggests a tolerance.
    for key, value in re.findall(r"\b(atol|rtol) ([0-9.]+(?:e[-+]?\d+)?)",
                                 str(tolerance.get("note"))):
        if "ulps" in tolerance and key not in tolerance:
            limits[key] = float(value)
    return Tolerance(limits["atol"], limits["rtol"], limits["ulps"])


def spacing(values: np.ndarray, element: str) -> np.ndarray:
    """The distance to the next number of type `element`."""
    exponents = np.frexp(values)[1] - 1
    exponents = np.maximum(exponents, MIN_EXPONENTS[element])
    return np.ldexp(1.0, exponents - DIGITS[element] + 1)


def compare(name: str, actual: np.ndarray, expected: np.ndarray,
            tolerance: Tolerance, element: str, slack: Any = 0.0) -> None:
    """Fails if any element is off by more than `tolerance` and `slack`."""
    if actual.shape != expected.shape:
        raise Failure(f"expected {name} of shape {list(expected.shape)}, "
                      f"got {list(actual.shape)}")
    if not expected.size:
        return
    with np.errstate(all="ignore"):
        limit = tolerance.absolute + tolerance.relative * np.abs(expected)
        limit = np.maximum(limit, tolerance.ulps * spacing(expected, element))
        limit = limit + slack
        error = np.abs(actual - expected)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        good = same | (np.isfinite(expected) & (error <= limit))
        excess = np.where(good, -1.0, np.nan_to_num(error - limit, nan=np.inf))
    if good.all():
        return
    where = np.unravel_index(np.argmax(excess), expected.shape)
    index = ", ".join(map(str, where))
    raise Failure(f"expected {name}[{index}] to be {expected[where]:.9g} +- "
                  f"{limit[where]:.3g}, got {actual[where]:.9g} "
                  f"({(~good).sum()} of {good.size} differ)")
