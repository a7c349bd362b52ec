"""The journal of the GPU suite: one line of JSON for each event.

A process appends a line before each task and a line with its result. Each line is
one write, so a process that is killed loses the task in progress and no other.
A line that was cut off is ignored."""

import json
import os


class Journal:
    def __init__(self, path):
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, record):
        text = json.dumps(record) + "\n"
        size = os.fstat(self.file).st_size
        if size and os.pread(self.file, 1, size - 1) != b"\n":
            text = "\n" + text  # ends the line of a process that was killed
        data = text.encode()
        while data:
            data = data[os.write(self.file, data) :]

    def begin(self, task, now):
        self.append({"task": task, "begin": now})

    def finish(self, task, result, seconds, key=""):
        """`key` says of what this is the result (plan.Catalogue.key)."""
        self.append({"task": task, "result": result, "seconds": round(seconds, 3), "key": key})
        os.fdatasync(self.file)


class Reader:
    """Reads the lines that were added since the last time."""

    def __init__(self, path):
        self.path = path
        self.offset = 0

    def read(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return list(_parse(whole))


def _parse(data):
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def load(path):
    """The records of a journal."""
    return Reader(path).read()


def find_results(records):
    """The last result of each task, as its record, unless it was found to be stale since."""
    found = {}
    for record in records:
        if "result" in record:
            found[record["task"]] = record
        for task in record.get("stale", ()):
            found.pop(task, None)
    return found


def write_atomically(path, text):
    """Replaces a file, so that readers see the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
