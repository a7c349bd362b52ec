"""Writes MLIR's bytecode of a module that is nested deeply, as MLIR's own writer needs a stack that is as deep.

Usage: deep_bytecode.py KIND DEPTH > FILE
"""

from __future__ import annotations

import sys

STRING, DIALECT, ATTR_TYPE, ATTR_TYPE_OFFSET, IR, PROPERTIES = 0, 1, 2, 3, 4, 8
# Components of an operation.
HAS_ATTRS, HAS_RESULTS, HAS_REGIONS = 1, 2, 16
VERSION = 6


def number(value: int) -> bytes:
    """As many zeros at the low end of the first byte as bytes follow."""
    for size in range(1, 9):
        if value < 1 << 7 * size:
            return ((value << 1 | 1) << (size - 1)).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + number(len(content)) + content


def flagged(value: int, flag: bool) -> bytes:
    return number(value << 1 | flag)


# Custom encodings of the builtin dialect, by their numbers in BuiltinDialectBytecode.td.
def array(*elements: int) -> bytes:
    return number(0) + number(len(elements)) + b"".join(map(number, elements))


def dictionary(name: int, value: int) -> bytes:
    return number(1) + number(1) + number(name) + number(value)


def string(index: int) -> bytes:
    return number(2) + number(index)


class OfLlvm(bytes):
    """An entry of the dialect llvm, with the numbers of LLVMDialectBytecode.td."""


BASIC_TYPE = OfLlvm(number(0) + number(1) + number(3) + number(8) + number(1))


def pointer_type(base: int) -> bytes:
    """A derived type. It refers to its base as an optional attribute, which upstream's reader reads by recursion."""
    return OfLlvm(number(3) + number(15) + number(0) + flagged(base, True) + number(0) * 5)


def call_site(callee: int, caller: int) -> bytes:
    return number(10) + number(callee) + number(caller)


UNKNOWN_LOCATION = number(15)


def tuple_type(*types: int) -> bytes:
    return number(15) + number(len(types)) + b"".join(map(number, types))


INDEX = number(1)


def op(name: int, location: int = 0, attributes: int | None = None, types: tuple = (), regions: bytes = b"") -> bytes:
    mask = (HAS_ATTRS * (attributes is not None) | HAS_RESULTS * bool(types) | HAS_REGIONS * bool(regions))
    text = number(name) + bytes([mask]) + number(location)
    if attributes is not None:
        text += number(attributes)
    if types:
        text += number(len(types)) + b"".join(map(number, types))
    return text + regions


def block(ops: list[bytes]) -> bytes:
    return flagged(len(ops), False) + b"".join(ops)


def module(content: list[bytes], attributes: int | None = None, location: int = 0) -> bytes:
    """A builtin.module, whose region is a section of its own."""
    region = number(1) + number(0) + block(content)
    return op(0, location, attributes, (), flagged(1, True) + section(IR, region))


def write(ops: list[bytes], attributes: list, types: list, group_size: int = 1) -> bytes:
    """A file; an attribute or type that is a str is one that has only a text. Other group sizes than 1 are false."""
    strings = ["builtin", "module", "t", "a", "t.a", "llvm"]

    def entries(items: list) -> tuple[bytes, bytes]:
        contents = [item.encode() + b"\0" if isinstance(item, str) else item for item in items]
        # One group of one entry for each: the dialect, the number of entries, and the size.
        sizes = [number(2 * isinstance(item, OfLlvm)) + number(group_size) +
                 flagged(len(content), not isinstance(item, str)) for item, content in zip(items, contents)]
        return b"".join(contents), b"".join(sizes)

    data, sizes = zip(entries(attributes), entries(types))
    texts = [text.encode() + b"\0" for text in strings]
    table = number(len(texts)) + b"".join(number(len(text)) for text in reversed(texts)) + b"".join(texts)
    # The dialects builtin, t and llvm, and the names builtin.module, which is registered, and t.a.
    dialects = number(3) + flagged(0, False) + flagged(2, False) + flagged(5, False) + number(2)
    dialects += number(0) + number(1) + flagged(1, True) + number(1) + number(1) + flagged(3, False)
    return (b"ML\xefR" + number(VERSION) + b"test\0" + section(STRING, table) + section(DIALECT, dialects) +
            section(ATTR_TYPE, b"".join(data)) +
            section(ATTR_TYPE_OFFSET, number(len(attributes)) + number(len(types)) + b"".join(sizes)) +
            section(IR, block(ops)) + section(PROPERTIES, number(0)))


def make(kind: str, depth: int) -> bytes:
    attributes, types = [UNKNOWN_LOCATION], []
    if kind == "isolated":  # Regions that are sections: modules in modules.
        ops = []
        for _ in range(depth):
            ops = [module(ops)]
        return write(ops, attributes, types)
    if kind == "regions":
        inner = op(1)
        for _ in range(depth - 1):
            inner = op(1, regions=flagged(1, False) + number(1) + number(0) + block([inner]))
        return write([module([inner])], attributes, types)
    if kind == "attributes":
        # The first is the location; 1 is the name; then arrays of one element, and the dictionary.
        arrays = [array()] + [array(2 + i) for i in range(depth - 2)]
        attributes += [string(4), *arrays]
        attributes.append(dictionary(1, len(attributes) - 1))
        return write([module([], len(attributes) - 1)], attributes, types)
    if kind == "cycle":
        attributes += [string(4), array(3), array(2), dictionary(1, 2)]
        return write([module([], 4)], attributes, types)
    if kind == "optional":
        attributes += [string(4), BASIC_TYPE] + [pointer_type(2 + i) for i in range(depth - 1)]
        attributes.append(dictionary(1, len(attributes) - 1))
        return write([module([], len(attributes) - 1)], attributes, types)
    if kind == "types":
        types = [INDEX] + [tuple_type(i) for i in range(depth - 1)]
        return write([module([op(1, types=(len(types) - 1,))])], attributes, types)
    if kind == "locations":
        attributes += [call_site(0, i) for i in range(depth - 1)]
        return write([module([], location=len(attributes) - 1)], attributes, types)
    if kind == "excess":  # Not deep: a group of more attributes than there are.
        return write([module([])], attributes, types, group_size=depth)
    assert kind == "text", kind
    attributes += [string(4), "[" * depth + "]" * depth, dictionary(1, 2)]
    return write([module([], 3)], attributes, types)


KINDS = ["isolated", "regions", "attributes", "optional", "cycle", "types", "locations", "text"]

if __name__ == "__main__":
    sys.stdout.buffer.write(make(sys.argv[1], int(sys.argv[2])))
