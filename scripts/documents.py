"""Blocks of Markdown documents, and the comparison of an output in a document with that of a run.

An output that differs from machine to machine says so, to readers and to scripts:

    The times are machine-dependent:

    <!-- machine-dependent: median_us, ratio -->
    ```text
    result 0 ok median_us=7588 ratio: 1.4
    ```

The comment names the values that are left out of the comparison. A value is the word after
its name and a space, `=` or `: `. The paragraph before the comment has the word
`machine-dependent`. Everything else in a block is the same on every machine.
"""

import re
from typing import List, NamedTuple, Optional, Tuple

# A fence, and before it an optional comment.
BLOCK = re.compile(r"(?:^<!-- machine-dependent: (?P<values>[^>]*?) *-->\n)?"
                   r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)
MARK = "machine-dependent"


class Block(NamedTuple):
    """A block between fences."""
    language: str
    text: str
    line: int  # number of its first line of text, from 1
    start: int  # position of the fence, or of its comment
    end: int
    values: Tuple[str, ...]  # names of machine-dependent values


def find_blocks(document: str) -> List[Block]:
    """All blocks, in order; they are not indented."""
    blocks = []
    for match in BLOCK.finditer(document):
        values = tuple(name.strip() for name in (match["values"] or "").split(",") if name.strip())
        line = document.count("\n", 0, match.start("text")) + 1
        blocks.append(Block(match["language"], match["text"], line, match.start(), match.end(), values))
    return blocks


def find_output(document: str, program: Block) -> Optional[Block]:
    """The output of a program: the `text` block that follows, after at most one paragraph."""
    following = next((block for block in find_blocks(document) if block.start >= program.end), None)
    if following is None or following.language != "text":
        return None
    between = document[program.end:following.start].strip()
    is_paragraph = "\n\n" not in between and not between.startswith("#")
    return following if is_paragraph else None


def normalize(text: str, values: Tuple[str, ...]) -> List[str]:
    """The lines without the given values. A line that begins with spaces continues the one before."""
    text = re.sub(r"\n +", " ", text.strip())
    for name in values:
        text = re.sub(rf"(?<!\w){re.escape(name)}( |=|: )\S+", rf"{name}\1*", text)
    return text.split("\n")


def compare_output(stated: Block, printed: str) -> List[str]:
    """The differences of a block from the last lines of what a run has printed."""
    expected, actual = normalize(stated.text, stated.values), normalize(printed, stated.values)
    actual = actual[-len(expected):]
    return [f"document: {e}\n     run: {a}" for e, a in zip(expected, actual) if e != a] + (
        ["expected a longer output of the run"] if len(actual) < len(expected) else [])


def check_marks(document: str) -> List[str]:
    """Marks that a reader does not see, or that name no value of their block."""
    errors = []
    for block in find_blocks(document):
        if not block.values:
            continue
        before = document[:block.start].rstrip().split("\n\n")[-1]
        if MARK not in before:
            errors.append(f"line {block.line}: expected the word {MARK} in the paragraph before the block")
        for name in block.values:
            if normalize(block.text, ()) == normalize(block.text, (name,)):
                errors.append(f"line {block.line}: expected a value of '{name}' in the block")
    return errors + [f"expected a block after {comment[0]}" for comment in re.finditer(rf"<!-- {MARK}[^>]*>", document)
                     if not any(block.start == comment.start() for block in find_blocks(document))]
