"""Permutes the modifiers of all instructions of a PTX file, and keeps what ptxas accepts.

The emulator must know every instruction that is left.
"""

import argparse
import os
import random
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^(\s*(?:@!?[%\w$]+\s+)?[a-z][a-z0-9]*)((?:\.[\w:]+){2,})(\s.*)$")


def permute(lines, generator):
    """The lines with permuted modifiers, and the numbers of those that changed."""
    result, changed = list(lines), set()
    for i, line in enumerate(lines):
        match = INSTRUCTION.match(line)
        if not match:
            continue
        modifiers = re.findall(r"\.[\w:]+", match[2])
        generator.shuffle(modifiers)
        result[i] = match[1] + "".join(modifiers) + match[3]
        if result[i] != line:
            changed.add(i)
    return result, changed


def restore_refused(ptxas, path, lines, original, changed):
    """Restores the lines that ptxas refuses."""
    target = re.search(r"\.target\s+(\w+)", "\n".join(lines))[1]
    while True:
        with open(path, "w") as file:
            file.write("\n".join(lines))
        done = subprocess.run([ptxas, f"-arch={target}", "-O0", path, "-o", os.devnull], capture_output=True, text=True)
        if done.returncode == 0:
            return
        output = done.stdout + done.stderr
        refused = {int(number) - 1 for number in re.findall(r"line (\d+)", output)} & changed
        if not refused:
            sys.exit(output)
        for i in refused:
            lines[i] = original[i]
        changed -= refused


def find_unknown(emulator, path, kernel):
    """The error of the emulator if it refuses an instruction; nothing else matters here."""
    done = subprocess.run([emulator, path, f"--kernel={kernel}", "--grid=1", "--block=1"], capture_output=True, text=True)
    match = re.search(r"error: ((?:unknown-instruction|unsupported): .*)", done.stderr)
    return match and match[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--emulator", default="ptx-emulator")
    parser.add_argument("--out", required=True, help="the path of a file that is overwritten")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    permuted = 0
    errors = []
    for file in options.files:
        with open(file) as opened:
            original = opened.read().split("\n")
        lines, changed = permute(original, generator)
        restore_refused(options.ptxas, options.out, lines, original, changed)
        permuted += len(changed)
        for kernel in re.findall(r"\.entry\s+([\w$]+)", "\n".join(lines)):
            error = find_unknown(options.emulator, options.out, kernel)
            if error:
                errors.append(f"{file}: {error}")
    print("\n".join([*errors, f"{permuted} permuted instructions, {len(errors)} errors"]))
    return bool(errors) or permuted == 0


if __name__ == "__main__":
    sys.exit(main())
