"""The parent's side of a contender's process."""

import json
import os
import pathlib
import select
import signal
import subprocess
import time


# Seconds that a process has to end by itself.
PATIENCE = 2


class Failure(Exception):
    """The process died, does not answer in time, or answers that it failed."""


class Process:
    """A process that answers requests, see worker.py.."""

    def __init__(self, command, environment, log):
        self.log = pathlib.Path(log)
        with open(log, "ab") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
                                            env=environment, start_new_session=True)
        self.received = b""

    def send(self, request):
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            raise Failure(self.describe_end())

    def receive(self, seconds):
        """The next answer; ends the process if there is none in time."""
        end = time.monotonic() + seconds
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                self.close()
                raise Failure(f"no answer in {seconds:g} s")
            part = os.read(pipe, 1 << 16)
            if not part:
                raise Failure(self.describe_end())
            self.received += part
        line, self.received = self.received.split(b"\n", 1)
        try:
            answer = json.loads(line)
        except ValueError:
            self.close()
            raise Failure(f"not an answer: {line[:80]!r}")
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def ask(self, request, seconds):
        self.send(request)
        return self.receive(seconds)

    def describe_end(self):
        """How the process ended, in one line."""
        self.close()
        code = self.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"the process ended ({how})" + (f": {lines[-1].strip()[:160]}" if lines and code > 0 else "")

    @property
    def is_alive(self):
        return self.process.poll() is None

    def busy(self):
        """Seconds of CPU that the threads of the process have taken."""
        total = 0
        try:
            for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
                total += int((thread / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            pass  # The thread or the process has ended.
        return 1e-9 * total

    def close(self):
        """Ends the process and those that it started."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
