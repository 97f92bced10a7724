"""Runs ``kainite`` as processes that have imported it already: a process without threads forks for each command.

A command is a process of its own, with its arguments, environment, output and exit status, as ``python -m kainite``
is. Only the imports, which are most of a command's processor time, are made once in a test process. Whether a command
starts by itself, and what it imports, others test (``tests/kainite/cli/test_main.py``, ``test_lazy_group.py``).

::

    test process ── request, with files ──► forking process ── fork ──► keeper ── fork ──► command
         ▲                                                                │
         └── the command's process id, then its exit status ◄─────────────┘

The forking process ends with the test process, whose end closes its standard input.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import RawIOBase
from typing import Any, Final

LONGEST_REQUEST: Final = 1 << 18
BESIDE_COMMANDS: Final = ("botocore.session", "kainite.console.serving", "kainite.store.dynamodb")
"""Modules that commands import when they run."""


@dataclass(frozen=True, slots=True)
class ReadyCommand:
    """A command that was started.

    Attributes:
        pid: its process id.
        answers: the file, without a buffer, from which its exit status is read.
    """

    pid: int
    answers: RawIOBase

    def wait(self) -> int:
        """Waits for the command's end; returns its exit status, once."""
        with self.answers:
            return int(self.answers.readline())

    def terminate(self) -> int:
        """Sends SIGTERM to the command if it still runs; returns its exit status."""
        has_ended, _, _ = select.select([self.answers], [], [], 0)
        if not has_ended:
            os.kill(self.pid, signal.SIGTERM)
        return self.wait()


def start(*arguments: str, stdout: int, stderr: int, env: Mapping[str, str] | None = None) -> ReadyCommand:
    """Starts ``kainite`` with these arguments, with files for its output that the caller closes."""
    reading, writing = os.pipe()
    request = json.dumps({"arguments": arguments, "env": dict(os.environ if env is None else env)})
    try:
        socket.send_fds(_forking(), [request.encode()], [stdout, stderr, writing])
    finally:
        os.close(writing)
    answers = os.fdopen(reading, "rb", buffering=0)
    return ReadyCommand(int(answers.readline()), answers)


def run(*arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Runs a command; returns its exit status, standard output and standard error."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        status = start(*arguments, stdout=output.fileno(), stderr=errors.fileno(), env=env).wait()
        output.seek(0)
        errors.seek(0)
        return status, output.read().decode(), errors.read().decode()


@functools.cache
def _forking() -> socket.socket:
    """Starts the process that forks; returns the socket that takes requests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen([sys.executable, "-P", __file__], stdin=theirs.fileno(), stdout=subprocess.DEVNULL)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Forks for each request; returns the request in the process that is to carry it out."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while True:
        request, files, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 3)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            _keep(*files)
            found: dict[str, Any] = json.loads(request)
            return found
        for file in files:
            os.close(file)


def _keep(stdout: int, stderr: int, answers: int) -> None:
    """Forks once more: returns in the command, and tells of its end in its parent."""
    if (command := os.fork()) == 0:
        os.close(answers)
        for file, number in ((os.open(os.devnull, os.O_RDONLY), 0), (stdout, 1), (stderr, 2)):
            os.dup2(file, number)
            os.close(file)
        return
    os.close(stdout)
    os.close(stderr)
    os.write(answers, f"{command}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(answers, f"{status}\n".encode())
    os._exit(0)


def _main() -> None:
    import kainite.cli

    for module in pkgutil.iter_modules(kainite.cli.__path__, "kainite.cli."):
        importlib.import_module(module.name)
    for name in BESIDE_COMMANDS:
        importlib.import_module(name)
    request = _serve(socket.socket(fileno=os.dup(0)))
    os.environ.clear()
    os.environ.update(request["env"])
    from kainite.cli.main import main

    main(request["arguments"], prog_name="kainite")


if __name__ == "__main__":
    _main()
