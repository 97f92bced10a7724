"""A record processor reads what the system shows of its daemon: variables, arguments, memory and open files.

One of the daemon's own user sees the variables, whatever ``childAwsProfile`` says, and so they may hold no secret that
the settings have in files. One of another user sees the arguments alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.another_user import NOBODY, require_root
from support.shared_host import AWS_SECRET, LIMIT, running
from support.waiting import eventually

USERS_SECRET = "the-secret-in-the-file-of-users"
PASSWORD = "the-password-in-the-passfile"

LOOK = """
import json, os, sys
folder, user = sys.argv[1], int(sys.argv[2])
said = open(folder + "/seen", "w")
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
own, parent = dict(os.environ), f"/proc/{os.getppid()}/"

def text(name):
    try:
        with open(parent + name, "rb") as file:
            return file.read(1 << 20).decode("latin-1")
    except PermissionError:
        return None

def listed(name):
    try:
        return os.listdir(parent + name)
    except PermissionError:
        return None

def opened(name):
    try:
        open(parent + name, "rb").close()
        return True
    except PermissionError:
        return False

seen = {"own": own, "environ": text("environ"), "cmdline": text("cmdline"), "fd": listed("fd"), "mem": opened("mem")}
print(json.dumps(seen), file=said)
said.close()
sys.stdin.read()
"""


def seen_by_processor(application: dict[str, str], folder: Path, user: int) -> dict[str, Any]:
    """Returns what a record processor sees of the daemon that started it; ``user`` 0 means the daemon's."""
    (folder / "look.py").write_text(LOOK)
    said = folder / "seen"
    application |= {"executableName": f"{sys.executable} {folder / 'look.py'} {folder} {user}"}
    with running("run", application, folder):
        eventually(lambda: said.exists() and said.read_text().endswith("\n"), LIMIT)
    found: dict[str, Any] = json.loads(said.read_text())
    return found


@pytest.mark.timeout(180)
def test_no_secret_of_a_file_is_in_the_daemons_variables_or_arguments_or_the_childs(
    application: dict[str, str], open_folder: Path, postgres: str
) -> None:
    for name, content in (("users", f"host:daemon,follow:{USERS_SECRET}\n"), ("passwords", f"*:*:*:*:{PASSWORD}\n")):
        (open_folder / name).write_text(content)
        (open_folder / name).chmod(0o600)
    with psycopg.connect(postgres, autocommit=True) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    separator = "&" if "?" in postgres else "?"
    application |= {
        "logSecretFile": str(open_folder / "users"),
        "target": f"{postgres}{separator}passfile={open_folder / 'passwords'}",
        "childAwsProfile": "none",
    }
    seen = seen_by_processor(application, open_folder, 0)
    everything = json.dumps(seen)
    assert USERS_SECRET not in everything
    assert PASSWORD not in everything
    assert "kainite" in seen["cmdline"]
    assert AWS_SECRET not in json.dumps(seen["own"])
    # What a setting keeps out of the child's variables still stands in those of the daemon: docs/security.md says so.
    assert AWS_SECRET in seen["environ"]


def test_a_processor_of_another_user_reads_neither_variables_nor_memory_nor_files(
    application: dict[str, str], open_folder: Path
) -> None:
    require_root()
    seen = seen_by_processor(application, open_folder, NOBODY)
    assert (seen["environ"], seen["fd"], seen["mem"]) == (None, None, False)
    assert "kainite" in seen["cmdline"]
