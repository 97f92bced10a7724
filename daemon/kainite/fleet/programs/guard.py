"""Runs one program of a duty for as long as its worker may: a small process between the daemon and the program.

A daemon that is killed, or that stands still, ends nothing. Its guard does: the daemon tells it on its standard input
how long the program may run, again after each ping, and the guard kills the program when that time is over, when its
input ends (the daemon is gone), or when it cannot be told any more. A guard that dies takes the program with it
(``PR_SET_PDEATHSIG``); what is left of its process group is killed by the daemon.

=====================  ====================================================================================
its input              then
=====================  ====================================================================================
``until SECONDS``      the program may run until this time of the boot clock
``stop``               SIGTERM for the program, and SIGKILL when the grace is over
its end                SIGKILL at once, after ``stop`` too: the daemon has died, and its successor may begin
=====================  ====================================================================================

The last sixth of a lease, or the grace if that is shorter, begins with SIGTERM. The guard ends as its program does:
with its status, or by its signal. All is in one process group, of which the guard is the first process.

This file is run by itself (``python -I -S guard.py GRACE UNTIL LEASE COMMAND…``), so it imports nothing of Kainite's.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
LOOK_S = 1.0
"""The longest wait: waits leave out the time for which a host was suspended, which the boot clock has."""
LOST = 75
"""The exit status when the time was over before the program began."""


def main(arguments: list[str]) -> int:
    """Runs the program; returns its exit status."""
    grace, until, lease = (float(argument) for argument in arguments[:3])
    if _now() >= until:
        return LOST
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the group: it is the program's
    set_option = ctypes.CDLL(None).prctl
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        program = subprocess.Popen(
            arguments[3:],
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: (signal.signal(signal.SIGTERM, signal.SIG_DFL), set_option(PR_SET_PDEATHSIG, 9)),
        )
    except OSError as error:
        print(f"cannot start {arguments[3]!r}: {error.strerror}", file=sys.stderr)
        return 127
    _Guard(program, reading, grace, until, lease).watch()
    status = program.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


class _Guard:
    """Waits for the daemon's commands, for the program's end, and for the end of the program's time."""

    def __init__(
        self, program: subprocess.Popen[bytes], children: int, grace: float, until: float, lease: float
    ) -> None:
        self._program = program
        self._children = children
        self._grace = grace
        self._until = until
        self._warning = min(grace, lease / 6)
        self._stopped_at: float | None = None
        self._warned = False
        self._said = b""

    def watch(self) -> None:
        """Returns when the program has ended."""
        while self._program.poll() is None:
            now = _now()
            if now >= self._end():
                _kill_group()
            if now >= self._until - self._warning and not self._warned:
                self._terminate()
            ready, _, _ = select.select([0, self._children], [], [], max(0.0, min(self._next() - now, LOOK_S)))
            if self._children in ready:
                os.read(self._children, 4096)
            if 0 in ready:
                self._hear(os.read(0, 4096))

    def _end(self) -> float:
        stopped = self._until if self._stopped_at is None else self._stopped_at + self._grace
        return min(self._until, stopped)

    def _next(self) -> float:
        return self._end() if self._warned else min(self._end(), self._until - self._warning)

    def _hear(self, data: bytes) -> None:
        if not data:
            _kill_group()
        self._said += data
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"until":
                self._until = max(self._until, float(rest))
            elif word == b"stop" and self._stopped_at is None:
                self._stopped_at = _now()
                self._terminate()

    def _terminate(self) -> None:
        self._warned = True
        os.killpg(0, signal.SIGTERM)


def _kill_group() -> None:
    os.killpg(0, signal.SIGKILL)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
