"""Where a C++ source can be mutated, and how: a walk over tree-sitter's tree.

No types are known here. Mutants that do not compile are dropped later (schemata.py),
so a rule may propose more than C++ takes, but no edit without effect.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Iterator

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

# How a site is written in the mutated source, with the switch `on(id)`.
EXPRESSION = "expression"  # (on ? (text) : (original))
CONDITION = "condition"  # the same, the original as a bool
VALUE = "value"  # the same, both as an mlir::Value: their types differ
DECLARATION = "declaration of "  # T x = init; (on ? (text) : x); x follows
STATEMENT = "statement"  # { if (on) { text } else { original } }

LONGEST_TEXT = 320


@dataclass(frozen=True)
class Site:
    """A range of bytes and its replacement."""

    start: int
    end: int
    text: str
    form: str


@dataclass
class Mutant:
    """One edit of a file; a constant has a site for each of its uses."""

    file: str
    kind: str
    function: str
    line: str
    edit: str
    row: int
    sites: list[Site]
    ordinal: int = 1
    number: int = 0

    @property
    def key(self) -> str:
        """The name of the mutant in files. It holds content, no line number."""
        again = f" #{self.ordinal}" if self.ordinal > 1 else ""
        return f"{self.file} ## {self.function}: {self.line} | {self.edit}{again}"


RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "|": "&", "&": "|"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
RENAMES = {
    "min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element",
    "all_of": "any_of", "any_of": "all_of", "none_of": "any_of",
    "succeeded": "failed", "failed": "succeeded",
    "front": "back", "back": "front", "take_front": "drop_front", "drop_front": "take_front",
    "take_back": "drop_back", "drop_back": "take_back",
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "rem": "div", "ceilDiv": "div",
}
# Classes of ops: their values may be exchanged, their C++ types may not.
OPS = {
    "AddFOp": "SubFOp", "SubFOp": "AddFOp", "MulFOp": "DivFOp", "DivFOp": "MulFOp",
    "AddIOp": "SubIOp", "SubIOp": "AddIOp", "MulIOp": "AddIOp", "DivUIOp": "RemUIOp", "RemUIOp": "DivUIOp",
    "CeilDivUIOp": "DivUIOp", "DivSIOp": "RemSIOp", "MinSIOp": "MaxSIOp", "MaxSIOp": "MinSIOp",
    "MinUIOp": "MaxUIOp", "MaxUIOp": "MinUIOp", "AndIOp": "OrIOp", "OrIOp": "AndIOp",
    "ShLIOp": "ShRUIOp", "ShRUIOp": "ShLIOp", "ExtUIOp": "ExtSIOp", "ExtSIOp": "ExtUIOp",
}
PREDICATES = {
    "slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt", "ult": "ule", "ule": "ult",
    "ugt": "uge", "uge": "ugt", "eq": "ne", "ne": "eq",
    "OLT": "OLE", "OLE": "OLT", "OGT": "OGE", "OGE": "OGT", "UNO": "ORD", "ORD": "UNO",
    "OEQ": "UNE", "UNE": "OEQ",
}
COMMUTATIVE = {"add", "mul", "min", "max", "both", "zip_equal", "zip", "MulIOp", "AddIOp", "MulFOp", "AddFOp"}
# Calls that only print, or whose argument is a hint.
SILENT = re.compile(r"^(assert|static_assert|LLVM_DEBUG|LDBG|llvm_unreachable|report_fatal_error)$|(^|[.>:])reserve$")
PLUMBING = re.compile(r"^(b|builder|rewriter|loc|nested|context|op)$|getLoc\(\)$|getContext\(\)$")


@dataclass
class Source:
    """A parsed file with the declarations that the rules look up."""

    file: str
    data: bytes
    enums: dict[str, list[str]]
    signatures: dict[str, list[list[str]]]
    constants: set[str] = field(default_factory=set)

    def text(self, node: Node) -> str:
        return self.data[node.start_byte:node.end_byte].decode()


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def name_of_function(source: Source, node: Node) -> str:
    """The function that a node is in, without its parameters."""
    while node and node.type != "function_definition":
        node = node.parent
    if not node:
        return "(file)"
    declarator = node.child_by_field_name("declarator")
    while declarator and declarator.type != "function_declarator":
        declarator = next((c for c in declarator.named_children if c.type.endswith("declarator")), None)
    name = declarator and declarator.child_by_field_name("declarator")
    return re.sub(r"mlir::bngrad::", "", flat(source.text(name))) if name else "(function)"


def returns_failure_or(source: Source, node: Node) -> bool:
    """Whether the function around `node` gives a FailureOr, which takes no success()."""
    while node and node.type not in ("function_definition", "lambda_expression"):
        node = node.parent
    body = node and node.child_by_field_name("body")
    head = source.data[node.start_byte:body.start_byte] if body else b""
    return b"FailureOr" in head


def is_message(source: Source, node: Node) -> bool:
    """Whether the expression builds a text."""
    if node.type != "binary_expression":
        return False
    operator = node.child_by_field_name("operator").type
    if operator not in ("<<", "+"):
        return False
    text = source.text(node)
    return operator == "<<" and not re.fullmatch(r"[\w:]+ << \w+", text) or '"' in text or "to_string" in text


def is_skipped(source: Source, node: Node) -> bool:
    """Whether nothing below `node` is mutated."""
    kind = node.type
    if kind.startswith("preproc_if"):
        return False
    if kind.startswith("preproc_") or kind in (
            "template_argument_list", "template_parameter_list", "static_assert_declaration", "decltype",
            "enumerator_list", "optional_parameter_declaration", "bitfield_clause", "string_literal", "comment",
            "raw_string_literal", "using_declaration", "alias_declaration", "lambda_capture_specifier"):
        return True
    if kind == "call_expression":
        return bool(SILENT.search(source.text(node.child_by_field_name("function"))))
    if kind in ("declaration", "field_declaration"):
        return any(source.text(c) == "constexpr" for c in node.children)
    return is_message(source, node)


def collect_constants(source: Source, root: Node) -> None:
    """Names of `constexpr` integers: their uses are mutated, as they themselves must stay constant."""
    pattern = rb"constexpr\s+(?:int64_t|int|unsigned|uint64_t|size_t)\s+(k[A-Z]\w*)"
    source.constants = {m.group(1).decode() for m in re.finditer(pattern, source.data)}


def walk(source: Source, node: Node) -> Iterator[tuple[Node, str, list[tuple[str, str]]]]:
    """Gives each node with edits: (node, kind, [(text, form)])."""
    if is_skipped(source, node):
        return
    if not node.has_error:
        rule = RULES.get(node.type)
        if rule:
            for kind, edits in rule(source, node):
                yield node, kind, edits
    for child in node.named_children:
        if node.type == "case_statement" and child == node.child_by_field_name("value"):
            continue
        if node.type == "array_declarator" and child == node.child_by_field_name("size"):
            continue
        if node.type == "if_statement" and any(c.type == "constexpr" for c in node.children) and \
                child == node.child_by_field_name("condition"):
            continue
        yield from walk(source, child)


Edits = Iterator[tuple[str, list[tuple[str, str]]]]


def is_decided(node: Node) -> bool:
    """Whether the node is a condition or a part of one, each of which is forced true and false: to negate it
    as well shows no more."""
    parent = node.parent
    while parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent.type == "binary_expression":
        return parent.child_by_field_name("operator").type in ("&&", "||")
    return parent.type == "condition_clause"


def binary(source: Source, node: Node) -> Edits:
    operator = node.child_by_field_name("operator").type
    left, right = (source.text(node.child_by_field_name(f)) for f in ("left", "right"))
    if operator in RELATIONS:
        if operator not in ("==", "!=") or not is_decided(node):
            yield "operator", [(f"{left} {RELATIONS[operator]} {right}", EXPRESSION)]
    elif operator in ARITHMETIC:
        yield "operator", [(f"{left} {ARITHMETIC[operator]} {right}", EXPRESSION)]
    elif operator == "<<" and re.fullmatch(r"\w+", left) and re.fullmatch(r"\w+", right):
        yield "operator", [(f"{left} >> {right}", EXPRESSION)]
    elif operator in ("&&", "||"):
        # Without one clause: shows as much as `&&` for `||`, and more.
        clauses = [c for c in (node.child_by_field_name("left"), node.child_by_field_name("right"))]
        for clause, other in zip(clauses, (right, left)):
            if clause.type != "binary_expression" or clause.child_by_field_name("operator").type != operator:
                yield "condition", [(f"static_cast<bool>({other})", CONDITION)]


def unary(source: Source, node: Node) -> Edits:
    operator = node.child_by_field_name("operator").type
    argument = source.text(node.child_by_field_name("argument"))
    if operator in ("!", "not"):
        if not is_decided(node):
            yield "operator", [(f"static_cast<bool>({argument})", CONDITION)]
    elif operator == "-" and not argument.isdigit():
        yield "operator", [(argument, EXPRESSION)]


def update(source: Source, node: Node) -> Edits:
    text = source.text(node)
    if node.parent.type == "for_statement":
        return
    yield "operator", [(text.replace("++", "--") if "++" in text else text.replace("--", "++"), EXPRESSION)]


def number(source: Source, node: Node) -> Edits:
    text = source.text(node)
    if re.fullmatch(r"\d+", text):
        value = int(text)
        news = {0: [1], 1: [0, 2]}.get(value, [value - 1, value + 1])
    elif re.fullmatch(r"\d+\.\d*", text):
        news = {0.0: ["1.0"], 1.0: ["0.0", "2.0"]}.get(float(text), [f"2 * {text}"])
    elif re.fullmatch(r"0x[0-9a-fA-F]+", text):
        news = [f"{text} + 1"]
    else:
        return
    yield "constant", [(str(new), EXPRESSION) for new in news]


def boolean(source: Source, node: Node) -> Edits:
    yield "constant", [("false" if node.type == "true" else "true", EXPRESSION)]


def condition_clause(source: Source, node: Node) -> Edits:
    """Forced true and false, unless its clauses show as much. A loop that never ends shows nothing."""
    value = node.child_by_field_name("value")
    parent = node.parent
    if parent.type == "switch_statement" or not value or any(c.type == "constexpr" for c in parent.children):
        return
    if value.type == "declaration":
        name = declared_name(source, value)
        if name and parent.type == "if_statement" and not node.child_by_field_name("initializer"):
            yield "condition", [("false", DECLARATION + name)]
        return
    operator = value.type == "binary_expression" and value.child_by_field_name("operator").type
    if operator != "||" or parent.type == "while_statement":
        yield "condition", [("false", CONDITION)]
    if operator != "&&" and parent.type != "while_statement":
        yield "condition", [("true", CONDITION)]


def declared_name(source: Source, node: Node) -> str | None:
    """The variable of `if (T x = init)`."""
    node = node.child_by_field_name("declarator")
    while node and node.type != "identifier":
        node = next((c for c in node.named_children if c.type == "identifier" or c.type.endswith("declarator")), None)
    return source.text(node) if node else None


def loop(source: Source, node: Node) -> Edits:
    if node.child_by_field_name("condition"):
        yield "condition", [("false", CONDITION)]


def ternary(source: Source, node: Node) -> Edits:
    parts = [source.text(node.child_by_field_name(f)) for f in ("consequence", "alternative")]
    yield "condition", [(part, EXPRESSION) for part in parts]


def callee_of(source: Source, node: Node) -> tuple[str, str, Node]:
    """The name that a call ends in, the text before it, and the node of the function."""
    function = node.child_by_field_name("function")
    text = source.text(function)
    match = re.fullmatch(r"(.*?)(\w+)((?:<[^()]*>)?)", text, re.S)
    return (match.group(2), match.group(1), function) if match else ("", text, function)


def call(source: Source, node: Node) -> Edits:
    name, before, function = callee_of(source, node)
    arguments = node.child_by_field_name("arguments")
    text = source.text(node)
    rest = text[len(source.text(function)):]
    tail = source.text(function)[len(before) + len(name):]
    if name in ("success", "failure") and rest == "()" and not returns_failure_or(source, node):
        yield "result", [("failure()" if name == "success" else "success()", EXPRESSION)]
    elif RENAMES.get(name) and (before or name in ("succeeded", "failed", "min", "max")):
        yield "call", [(f"{before}{RENAMES[name]}{tail}{rest}", EXPRESSION)]
    elif name in ("divideCeil", "alignTo") and len(arguments.named_children) == 2:
        first, second = (source.text(c) for c in arguments.named_children)
        news = [f"({first}) / ({second})"] if name == "divideCeil" else [f"({first})"]
        yield "call", [(f"decltype({text})({new})", EXPRESSION) for new in news]
    match = re.search(r"\b([A-Z]\w*Op)(::create$|>$)", source.text(function))
    if match and match.group(1) in OPS and (match.group(2) == "::create" or name == "createOrFold"):
        new = source.text(function)[:match.start(1)] + OPS[match.group(1)] + source.text(function)[match.end(1):]
        yield "call", [(new + rest, VALUE)]
    yield from swapped(source, node, name, arguments)


def signatures_of(data: bytes) -> dict[str, list[list[str]]]:
    """The types of the parameters of each function and lambda with a name that a file declares."""
    found: dict[str, list[list[str]]] = defaultdict(list)

    def visit(node: Node) -> None:
        name = parameters = None
        if node.type == "function_declarator":
            name, parameters = node.child_by_field_name("declarator"), node.child_by_field_name("parameters")
        elif node.type == "init_declarator":
            value = node.child_by_field_name("value")
            if value and value.type == "lambda_expression" and value.child_by_field_name("declarator"):
                name = node.child_by_field_name("declarator")
                parameters = value.child_by_field_name("declarator").child_by_field_name("parameters")
        if name and parameters:
            types = [flat(data[p.start_byte:last_of_type(p)].decode()) for p in parameters.named_children
                     if p.type.endswith("parameter_declaration")]
            found[data[name.start_byte:name.end_byte].decode().split("::")[-1]].append(types)
        for child in node.named_children:
            visit(child)

    visit(parse(data))
    return found


def last_of_type(parameter: Node) -> int:
    """Where the type ends: at the name, but for the mark of a reference or pointer."""
    declarator = parameter.child_by_field_name("declarator")
    while declarator and declarator.type != "identifier" and declarator.named_children:
        declarator = declarator.named_children[-1]
    return declarator.start_byte if declarator else parameter.end_byte


def may_swap(source: Source, name: str, count: int, at: int) -> bool:
    """Whether some function of ours with this name, or none that is known, takes `at` and the next swapped."""
    known = [types for types in source.signatures.get(name, []) if len(types) >= count]
    return not known or any(types[at] == types[at + 1] for types in known)


def swapped(source: Source, node: Node, name: str, arguments: Node) -> Edits:
    parts = [c for c in arguments.named_children if c.type != "comment"]
    function = source.text(node.child_by_field_name("function"))
    if name in COMMUTATIVE or any(function.endswith((op + "::create", op + ">")) for op in COMMUTATIVE):
        return
    # Equality holds either way.
    if re.search(r"Predicate::(eq|ne)$", source.text(parts[0]) if parts else ""):
        return
    texts = [source.text(p) for p in parts]
    for i in range(len(parts) - 1):
        if texts[i] == texts[i + 1] or not may_swap(source, name, len(parts), i) or \
                any(p.type in ("lambda_expression", "string_literal", "initializer_list") for p in parts[i:i + 2]) or \
                any(PLUMBING.search(flat(t)) for t in texts[i:i + 2]):
            continue
        order = texts[:i] + [texts[i + 1], texts[i]] + texts[i + 2:]
        yield "arguments", [(f"{function}({', '.join(order)})", EXPRESSION)]


def enumerator(source: Source, node: Node) -> Edits:
    parent = node.parent
    if parent.type in ("qualified_identifier", "template_function", "function_declarator", "call_expression",
                       "using_declaration", "template_type"):
        return
    path = source.text(node).split("::")
    if len(path) < 2:
        return
    scope, name = path[-2], path[-1]
    if scope.startswith("Cmp") and name in PREDICATES:
        new = PREDICATES[name]
    elif name in source.enums.get(scope, []):
        values = source.enums[scope]
        new = values[(values.index(name) + 1) % len(values)]
    else:
        return
    if new != name:
        yield "enumerator", [("::".join(path[:-1] + [new]), EXPRESSION)]


def statement(source: Source, node: Node) -> Edits:
    inner = node.named_children[0] if node.named_children else None
    if not inner:
        return
    if inner.type == "assignment_expression":
        operator = inner.child_by_field_name("operator").type
        left, right = (source.text(inner.child_by_field_name(f)) for f in ("left", "right"))
        if operator in ASSIGNMENTS:
            yield "operator", [(f"{left} {ASSIGNMENTS[operator]} {right};", STATEMENT)]
        if left != "reason":
            yield "statement", [("", STATEMENT)]
    elif inner.type == "call_expression" and not is_skipped(source, inner):
        yield "statement", [("", STATEMENT)]


def jump(source: Source, node: Node) -> Edits:
    """An early return, continue or break; the only one of an `if` is its condition forced false."""
    block = node.parent
    if block.type != "compound_statement" or len(block.named_children) < 2:
        return
    if block.parent.type in ("if_statement", "for_statement", "for_range_loop", "else_clause"):
        yield "statement", [("", STATEMENT)]


RULES = {
    "binary_expression": binary, "unary_expression": unary, "update_expression": update,
    "number_literal": number, "true": boolean, "false": boolean,
    "condition_clause": condition_clause, "for_statement": loop, "conditional_expression": ternary,
    "call_expression": call, "qualified_identifier": enumerator,
    "expression_statement": statement, "return_statement": jump, "continue_statement": jump,
    "break_statement": jump,
}


def place_of(node: Node) -> Node:
    """The node that an edit replaces."""
    if node.type == "condition_clause":
        return node.child_by_field_name("value")
    if node.type == "for_statement":
        return node.child_by_field_name("condition")
    return node


def line_around(source: Source, node: Node) -> str:
    start = source.data.rfind(b"\n", 0, node.start_byte) + 1
    end = source.data.find(b"\n", node.start_byte)
    return flat(source.data[start:end].decode())


def make(source: Source, node: Node, kind: str, edit: str, sites: list[Site]) -> Mutant:
    return Mutant(source.file, kind, name_of_function(source, node), line_around(source, node), edit,
                  node.start_point[0] + 1, sites)


def describe(source: Source, place: Node, text: str, form: str) -> str:
    original = flat(source.text(place))
    if form == STATEMENT and not text:
        return f"drop {shorten(original)}"
    return f"{shorten(original)} -> {shorten(flat(text))}"


def shorten(text: str) -> str:
    """A long text by its ends."""
    return text if len(text) <= 90 else f"{text[:50]} ... {text[-34:]}"


def constant_mutants(source: Source, root: Node) -> Iterator[Mutant]:
    """`kName` one more and one less, at all of its uses at once."""
    uses: dict[str, list[Node]] = defaultdict(list)

    def collect(node: Node) -> None:
        if is_skipped(source, node):
            return
        if node.type == "identifier" and source.text(node) in source.constants:
            uses[source.text(node)].append(node)
        for child in node.named_children:
            collect(child)

    collect(root)
    for name, nodes in uses.items():
        # `X::kName` is replaced as a whole.
        places = [n.parent if n.parent.type == "qualified_identifier" else n for n in nodes]
        for step in ("+ 1", "- 1"):
            sites = [Site(p.start_byte, p.end_byte, f"{source.text(p)} {step}", EXPRESSION) for p in places]
            yield make(source, nodes[0], "constant", f"{name} -> {name} {step}", sites)


def parse(data: bytes) -> Node:
    return Parser(Language(tree_sitter_cpp.language())).parse(data).root_node


def find_mutants(file: str, data: bytes, enums: dict[str, list[str]],
                 signatures: dict[str, list[list[str]]]) -> list[Mutant]:
    """All mutants of a file, in the order of the file; equal keys are numbered. `enums` has the enumerators of
    each enum, `signatures` the types that functions take; others are not known."""
    source = Source(file, data, enums, signatures)
    root = parse(data)
    collect_constants(source, root)
    found: list[Mutant] = []
    for node, kind, edits in walk(source, root):
        place = place_of(node)
        for text, form in edits:
            if name_of_function(source, place) == "(file)" or len(text) > LONGEST_TEXT:
                continue
            site = Site(place.start_byte, place.end_byte, text, form)
            found.append(make(source, place, kind, describe(source, place, text, form), [site]))
    found += constant_mutants(source, root)
    found.sort(key=lambda m: (m.sites[0].start, m.sites[0].end))
    seen: dict[str, int] = defaultdict(int)
    unique = []
    places = set()
    for mutant in found:
        # Two rules may propose one edit.
        where = (mutant.sites[0].start, mutant.sites[0].end, flat(mutant.sites[0].text))
        if where in places:
            continue
        places.add(where)
        seen[mutant.key] += 1
        mutant.ordinal = seen[mutant.key]
        unique.append(mutant)
    return unique
