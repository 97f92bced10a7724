"""The guard: its program runs no longer than its daemon lives and says, and the guard ends as its program does."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kainite.base.clock import boot_seconds
from kainite.fleet.programs import guard as guard_module
from kainite.fleet.programs.duty_program import GUARD
from kainite.fleet.programs.guard import LOST
from support.duty_runs import began, gone

CHILD = Path(__file__).parents[3] / "children" / "duty.py"
LONG = 60.0


def guarded(*command: str, grace: float = 10.0, lasts: float = LONG) -> subprocess.Popen[bytes]:
    """Starts a program with its guard, for so many seconds."""
    words = (sys.executable, "-I", "-S", str(GUARD), str(grace), str(boot_seconds() + lasts), str(LONG))
    return subprocess.Popen((*words, *command), stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_it_is_run_by_itself_and_imports_nothing_of_kainites() -> None:
    assert Path(str(guard_module.__file__)) == GUARD
    assert "import kainite" not in GUARD.read_text()
    assert "from kainite" not in GUARD.read_text()


@pytest.mark.parametrize("status", [0, 3])
def test_it_ends_with_its_programs_status(status: int) -> None:
    with guarded("sh", "-c", f"exit {status}") as guard:
        assert guard.wait(30) == status


def test_it_ends_by_its_programs_signal() -> None:
    with guarded("sh", "-c", "kill -USR1 $$") as guard:
        assert guard.wait(30) == -signal.SIGUSR1


def test_a_program_that_does_not_exist_is_named() -> None:
    with guarded("/no/such/program") as guard:
        _, errors = guard.communicate(timeout=30)
        assert (guard.returncode, errors) == (127, b"cannot start '/no/such/program': No such file or directory\n")


def test_a_time_that_is_over_starts_nothing(file: Path) -> None:
    with guarded("touch", str(file), lasts=-1.0) as guard:
        assert guard.wait(30) == LOST
    assert not file.exists()


async def test_a_program_whose_time_is_over_is_killed_with_its_group(file: Path) -> None:
    with guarded(sys.executable, str(CHILD), str(file), "--deaf", grace=0.1, lasts=3.0) as guard:
        pid = await began(file)
        await gone(pid)
        assert await asyncio.to_thread(guard.wait, 30) == -signal.SIGKILL


async def test_a_later_time_is_taken_and_an_earlier_one_is_not(file: Path) -> None:
    with guarded(sys.executable, str(CHILD), str(file), "--deaf", grace=0.1, lasts=5.0) as guard:
        pid = await began(file)
        assert guard.stdin is not None
        end = boot_seconds() + 6.0
        guard.stdin.write(f"until {end}\nuntil {end - 5.5}\n".encode())
        guard.stdin.flush()
        await gone(pid)
        assert boot_seconds() >= end


@pytest.mark.parametrize("deaf", [False, True])
async def test_the_program_dies_with_its_daemon(file: Path, deaf: bool) -> None:
    more = ("--deaf",) if deaf else ()
    with guarded(sys.executable, str(CHILD), str(file), *more) as guard:
        pid = await began(file)
        assert guard.stdin is not None
        guard.stdin.close()  # as the kernel does when the daemon is killed
        await gone(pid)


async def test_the_program_dies_with_its_guard(file: Path) -> None:
    with guarded(sys.executable, str(CHILD), str(file)) as guard:
        pid = await began(file)
        guard.kill()
        await gone(pid)


async def test_the_program_dies_with_its_daemon_in_its_grace_too(file: Path) -> None:
    with guarded(sys.executable, str(CHILD), str(file), "--deaf", grace=LONG) as guard:
        pid = await began(file)
        assert guard.stdin is not None
        guard.stdin.write(b"stop\n")
        guard.stdin.close()  # its daemon's successor on this host gives the duty to another worker at once
        await gone(pid)
