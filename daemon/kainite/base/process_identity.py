"""The identity of a process: who wrote something, and whether the writer is provably gone.

A name that a person chose (a worker id) does not tell two processes apart: two hosts may be given the same one. A
:class:`ProcessIdentity` is unlike that of every other process, on this host and elsewhere. A process is *provably
gone* when this host can tell: it ran since the same boot and in the same namespaces, and there is no such process any
more. Of a process on another host, in another container or before a reboot nothing can be proven; whoever waits for
it waits for its lease.

Facts that the proof relies on: a boot has one id; the kernel gives a process id to another process only after the
first has ended; the start time of a process, in clock ticks since boot, tells two processes with the same id apart. A
start time is read in the reader's time namespace, so this namespace counts too. Where there is no ``/proc``, nothing
is ever proven.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

_NAMESPACES = ("pid", "time")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of one process.

    Attributes:
        token: random; no other process has it.
        host: the host's name, for messages alone.
        boot: id of the host's boot; empty where it is unknown.
        namespaces: the kernel's names of the process's namespaces for process ids and for time.
        pid: the process id in this namespace.
        started: start time in clock ticks since boot.
    """

    token: str
    host: str = ""
    boot: str = ""
    namespaces: str = ""
    pid: int = 0
    started: int = 0

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.host else f"process {self.token}"

    def as_text(self) -> str:
        """Returns the identity as :func:`from_text` reads it."""
        return orjson.dumps(asdict(self)).decode()

    def is_gone(self, here: ProcessIdentity) -> bool:
        """Returns whether this process has provably ended, as the process ``here`` can tell; False when it cannot."""
        comparable = bool(self.boot and self.namespaces) and self.pid > 0 and self.started > 0
        if not comparable or (self.boot, self.namespaces) != (here.boot, here.namespaces):
            return False
        if not _exists(self.pid):
            return True
        started = start_time(self.pid)
        return started is not None and started != self.started


def from_text(text: str) -> ProcessIdentity | None:
    """Returns the identity that a text has; None for an empty text and for one of another form."""
    try:
        fields = orjson.loads(text)
        return ProcessIdentity(**{name: fields[name] for name in ProcessIdentity.__slots__})
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def this_process() -> ProcessIdentity:
    """Returns the identity of the calling process, the same one at each call; a fork has another one."""
    return _identity(os.getpid())


@functools.cache
def _identity(pid: int) -> ProcessIdentity:
    token, host = secrets.token_hex(16), socket.gethostname()
    if not _shows_own_namespace(pid):
        return ProcessIdentity(token, host, pid=pid)
    return ProcessIdentity(token, host, _boot_id(), _namespaces(), pid, start_time(pid) or 0)


def _shows_own_namespace(pid: int) -> bool:
    """Returns whether ``/proc`` has this namespace's process ids: one mounted in another namespace has its own."""
    try:
        return str(Path("/proc/self").readlink()) == str(pid)
    except OSError:
        return False


def network_stack() -> str:
    """Returns a name of the network stack that this process's loopback interface belongs to.

    Two processes with one name reach each other by it; empty where no such name is known.
    """
    try:
        return f"{_boot_id()} {Path('/proc/self/ns/net').readlink()}" if _boot_id() else ""
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """Returns when a process was started, in clock ticks since boot; None when this process cannot see it."""
    try:
        # The program's name, in parentheses, may contain anything; field 22 is the start time.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _exists(pid: int) -> bool:
    """Returns whether there is a process ``pid``; a process that may not be looked at exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_dead(pid)


def _is_dead(pid: int) -> bool:
    """Returns whether the process has ended in all its threads and only waits for its parent to notice."""
    try:
        threads = [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in ("Z", "X") and threads == [str(pid)]


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespaces() -> str:
    try:
        return " ".join(str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES)
    except OSError:
        return ""
