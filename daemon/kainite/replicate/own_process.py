"""Starts a module as a process that outlives the one that starts it, and is told its work on standard input.

The work may include addresses with passwords, which no command line may have. The process answers with one line of
standard output; its own child then goes on, in a process group of its own (``main`` of the module forks).
"""

from __future__ import annotations

import subprocess
import sys


def first_line_of(module: str, work: bytes) -> bytes:
    """Starts a module; returns its first line of output, empty where it ended before it had one.

    Args:
        module: its name, as ``python -m`` takes it.
        work: what it reads on standard input.
    """
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(work)
        started.stdin.close()
        return started.stdout.readline()
