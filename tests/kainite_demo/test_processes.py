"""Processes are stopped with all that they started, and their output is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from kainite.base.errors import DemoError
from kainite_demo.processes import Process
from support.waiting import eventually

LIMIT = 20.0


# A process that starts a child in a session of its own, says its pid, and waits; both ignore TERM if told so.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in sys.argv else signal.SIG_DFL)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def python(folder: Path, program: str, *arguments: str) -> Process:
    return Process("the part", [sys.executable, "-c", program, *arguments], folder, os.environ)


def child_of(process: Process) -> int:
    eventually(lambda: process.output.read_text().endswith("\n"))
    return int(process.output.read_text().splitlines()[-1])


@pytest.mark.parametrize("arguments", [(), ("deaf",)])
def test_stopping_ends_a_process_and_what_it_started(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    process = python(tmp_path, STUBBORN, *arguments)
    process.start()
    child = child_of(process)
    process.stop(grace=0.5)
    assert process.status is not None
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_killing_leaves_children_to_notice_and_stopping_sweeps_them_up(tmp_path: Path) -> None:
    process = python(tmp_path, STUBBORN)
    process.start()
    first = child_of(process)
    process.kill()
    assert psutil.pid_exists(first)
    process.start()
    second = child_of(process)
    eventually(lambda: child_of(process) != first)
    process.stop(grace=5)
    gone = [pid for pid in (first, second) if not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"]
    assert gone == [first, second]


def test_stopping_what_never_started_or_has_ended_is_nothing(tmp_path: Path) -> None:
    process = python(tmp_path, "pass")
    process.stop(grace=1)
    process.start()
    process.wait(LIMIT)
    process.stop(grace=1)
    assert process.status == 0


def test_a_process_that_ends_by_itself_is_reported_and_its_log_kept(tmp_path: Path) -> None:
    process = python(tmp_path, "import sys; print('x' * 9999, file=sys.stderr); sys.exit('no luck')")
    process.start()
    with pytest.raises(DemoError, match="the part ended with status 1"):
        process.wait(LIMIT)
    with pytest.raises(DemoError, match="the part ended with status 1"):
        process.check()
    assert process.tail().startswith(f"--- the end of {tmp_path}/the-part.log:\nxxx")
    assert process.tail().endswith("x\nno luck")
    assert len(process.tail()) < 1000


def test_a_process_that_takes_too_long_is_reported(tmp_path: Path) -> None:
    process = python(tmp_path, "import time; time.sleep(600)")
    process.start()
    with pytest.raises(DemoError, match="still running after 0 s"):
        process.wait(0.1)
    process.stop(grace=5)
