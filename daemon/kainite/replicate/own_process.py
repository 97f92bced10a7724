"""Starts a module as a process that outlives the one that starts it, and is told its work on standard input.

The work may include addresses with passwords, which no command line may have. The process answers with one line of
standard output; its own child then goes on, in a process group of its own (``main`` of the module forks).
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress


class OwnProcess:
    """Starts a module's processes, one after the other, each for one piece of work.

    Args:
        module: its name, as ``python -m`` takes it.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._begun: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Starts a process that waits for its work, unless one does; returns at once.

        To load a module takes as long as some ten thousand rows of a load.
        """
        if self._begun is None:
            self._begun = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def first_line(self, work: bytes) -> bytes:
        """Tells a process its work; returns its first line of output, empty where it ended before it had one."""
        self.begin()
        assert self._begun is not None
        with self._begun as told:
            self._begun = None
            assert told.stdin is not None
            assert told.stdout is not None
            with suppress(BrokenPipeError):  # it was killed while it waited
                told.stdin.write(work)
                told.stdin.close()
            return told.stdout.readline()

    def close(self) -> None:
        """Ends a process that still waits for its work: it reads the end of its input."""
        if self._begun is not None:
            with self._begun:
                self._begun = None
