"""Stops processes with all that they started, follows their output, and chooses victims."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DemoError
from kainite_demo.json_lines import JsonLines
from kainite_demo.killer import ROUNDS, Killer
from kainite_demo.processes import Process

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


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)


def child_of(process: Process) -> int:
    wait_for(lambda: process.output.read_text().endswith("\n"))
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
    wait_for(lambda: child_of(process) != first)
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


def test_lines_are_given_once_and_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    lines = JsonLines(path)
    assert list(lines.read()) == []
    with path.open("ab", buffering=0) as file:
        file.write(b'{"a":1}\nnoise\n[2]\n{"b"')
        assert list(lines.read()) == [{"a": 1}]
        file.write(b':2}\n\n{"cut":\n{"c":3}\n')
        assert list(lines.read()) == [{"b": 2}, {"c": 3}]
        assert list(lines.read()) == []


@given(st.integers(0, 1000), st.lists(st.tuples(st.floats(0, 5), st.integers(0, 3)), max_size=60))
def test_nobody_is_killed_before_it_worked_or_more_often_than_planned(
    seed: int, steps: list[tuple[float, int]]
) -> None:
    killer = Killer(("a",), 10.0, seed)
    now, done, at_last_kill, kills = 0.0, 0, 0, 0
    for pause, progress in steps:
        now += pause
        done += progress
        if killer.choose(now, {"a": done}):
            assert done > at_last_kill
            at_last_kill, kills = done, kills + 1
    assert kills <= ROUNDS


def test_the_same_seed_kills_after_the_same_work() -> None:
    def moments(seed: int) -> list[tuple[int, str]]:
        killer = Killer(("a", "b"), 10.0, seed)
        ticks = ((tick, killer.choose(tick / 10, {"a": tick, "b": tick // 7})) for tick in range(500))
        return [(tick, victim) for tick, victims in ticks for victim in victims]

    assert len(moments(1)) == 2 * ROUNDS
    assert moments(1) == moments(1) != moments(2)
    assert Killer((), 10.0, 1).choose(5, {"a": 1}) == []
