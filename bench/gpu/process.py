"""Processes of the GPU suite that end with their parent."""

import ctypes
import os
import signal

# The exit status of a worker whose device does not answer.
RESTART = 75
PR_SET_PDEATHSIG = 1


def die_with_parent(parent):
    """This process is killed when its parent ends, even by SIGKILL. Also after exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def end_with_me():
    """The function that Popen calls in a child of this process."""
    parent = os.getpid()
    return lambda: die_with_parent(parent)
