"""What a test leaves open fails that test, not one that runs later; seen in runs of pytest of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support import leftovers

SOCKET_IN_A_CYCLE = """
import socket

def leave_open():
    held = [socket.socket()]
    held.append(held)
"""
CONNECTION_OF_A_LOOP = """
import asyncio, socket

async def served():
    server = await asyncio.start_server(lambda reader, writer: reader.read(), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()):
        await asyncio.sleep(0.05)
    server.close()

def test_it():
    asyncio.run(served())
"""


def outcomes(folder: Path, *tests: str) -> str:
    """Returns pytest's summary lines of these modules, which run in this order."""
    shutil.copy(Path(leftovers.__file__), folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    for number, test in enumerate(tests):
        (folder / f"test_{number}.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-ra", "--tb=no"]
    env = {**os.environ, "COLUMNS": "200"}
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    return ended.stdout.partition("short test summary info")[2]


def test_the_test_that_left_a_socket_open_fails(tmp_path: Path) -> None:
    summary = outcomes(
        tmp_path, SOCKET_IN_A_CYCLE + "\ndef test_it():\n    leave_open()\n", "def test_next():\n    pass\n"
    )
    assert "ERROR test_0.py::test_it - conftest.LeftOpenError: unclosed <socket.socket" in summary
    assert "2 passed, 1 error" in summary


def test_a_connection_that_outlives_its_loop_is_found_too(tmp_path: Path) -> None:
    summary = outcomes(tmp_path, CONNECTION_OF_A_LOOP, "def test_next():\n    pass\n")
    assert "ERROR test_0.py::test_it - conftest.LeftOpenError: " in summary
    assert "2 passed, 1 error" in summary


def test_what_a_failed_test_left_open_fails_no_other(tmp_path: Path) -> None:
    failing = SOCKET_IN_A_CYCLE + "\ndef test_it():\n    held = socket.socket()\n    assert not held\n"
    summary = outcomes(tmp_path, failing, "def test_next():\n    pass\n")
    assert "1 failed, 1 passed" in summary
    assert "error" not in summary
