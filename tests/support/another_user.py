"""Another user of this host, who looks at whatever processes, files and ports of Kainite's let themselves be looked at.

Only root may become another user. What the attacker needs of Python is imported before: the interpreter may stand where
that user does not get.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import pytest

LIMIT = 60.0
NOBODY = 65534

_LOOK = """
import encodings.idna, json, os, socket, stat, sys
wanted = json.loads(sys.argv[1])
os.setgroups([])
os.setgid(wanted["user"])
os.setuid(wanted["user"])

def text(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode("latin-1")
    except OSError:
        return None

def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return None

def walk(path):
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in listed(path) or ():
            yield from walk(os.path.join(path, name))
    elif text(path) is not None:
        yield path

def answer(port, path):
    said = b""
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        try:
            one.settimeout(2)
            one.sendall(f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode())
            while len(said) < 65536 and (piece := one.recv(65536)):
                said += piece
        except OSError:
            pass
        return said.decode("latin-1")

print(json.dumps({
    "command_lines": [text(f"/proc/{pid}/cmdline") or "" for pid in wanted["pids"]],
    "environments": [pid for pid in wanted["pids"] if text(f"/proc/{pid}/environ") is not None],
    "descriptors": [pid for pid in wanted["pids"] if listed(f"/proc/{pid}/fd") is not None],
    "files": [path for folder in wanted["folders"] for path in walk(folder)],
    "answers": {port: "".join(answer(port, path) for path in ("/", "/environment/")) for port in wanted["ports"]},
}))
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What another user gets to see.

    Attributes:
        command_lines: of the processes, with their arguments.
        environments, descriptors: process ids whose variables, or open files, can be read.
        files: those that can be read.
        answers: what each port answers to somebody who speaks HTTP, and asks for the first page and for that of the
            Spark UI's settings.
    """

    command_lines: list[str]
    environments: list[int]
    descriptors: list[int]
    files: list[str]
    answers: dict[str, str]

    def mentions(self, *secrets: str) -> list[str]:
        """Returns the secrets that stand anywhere in it."""
        everything = json.dumps(asdict(self))
        return [secret for secret in secrets if secret in everything]


def require_root() -> None:
    """Skips the test where the tests do not run as root, who alone may become another user."""
    if os.getuid() != 0:
        pytest.skip("only root may become another user: run the tests as root, as CI does")


def seen_by_nobody(processes: Iterable[psutil.Process], folders: Iterable[Path] = ()) -> Seen:
    """Returns what the user ``nobody`` sees of running processes, their ports, and folders."""
    family = list(processes)
    ports = {each.laddr.port for one in family for each in one.net_connections("tcp") if each.status == "LISTEN"}
    wanted = {
        "user": NOBODY,
        "pids": [one.pid for one in family],
        "folders": [str(folder) for folder in folders],
        "ports": sorted(ports),
    }
    command = [sys.executable, "-c", _LOOK, json.dumps(wanted)]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return Seen(**json.loads(done.stdout))
