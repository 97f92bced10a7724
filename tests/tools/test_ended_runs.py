"""A run of tests that gets SIGTERM ends the processes of the test under way, and of its fixtures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import psutil

from support import ended_runs
from support.waiting import eventually

TEST = """
import subprocess, sys
from pathlib import Path
import pytest

HERE = Path(__file__).parent
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]

def sleeping(name):
    process = subprocess.Popen(SLEEPS, start_new_session=True)
    try:
        HERE.joinpath(f"{name}.part").write_text(str(process.pid))
        HERE.joinpath(f"{name}.part").rename(HERE / f"{name}.pid")
        yield process
    finally:
        process.kill()
        process.wait()

@pytest.fixture(scope="session")
def server():
    yield from sleeping("server")

def test_it(server):
    for process in sleeping("child"):
        process.wait()
"""


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    shutil.copy(Path(ended_runs.__file__), tmp_path / "conftest.py")
    (tmp_path / "test_it.py").write_text(TEST)
    told = [tmp_path / "server.pid", tmp_path / "child.pid"]
    run = subprocess.Popen([sys.executable, "-m", "pytest", "-p", "no:xdist", "-q"], cwd=tmp_path)
    try:
        eventually(lambda: all(path.exists() for path in told))
        left = [int(path.read_text()) for path in told]
        assert all(map(psutil.pid_exists, left))
        run.terminate()
        assert run.wait(60) == 2, "interrupted"
        assert not any(map(psutil.pid_exists, left))
    finally:
        run.kill()
        run.wait()
