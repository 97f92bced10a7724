"""Programs of duties with their guards: real processes that end, hang, flood and are left alone."""

# ruff: noqa: ASYNC110, ASYNC240 - what these tests wait for is other processes' doing, and nothing else runs

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kainite.base.clock import boot_seconds
from kainite.fleet.model.records import Duty, Work
from kainite.fleet.programs.commands import HostCommand
from kainite.fleet.programs.duty_program import DutyProgram
from kainite.fleet.steps.plan import ProgramPhase, ProgramState
from support.duty_runs import began, gone

CHILD = Path(__file__).parents[3] / "children" / "duty.py"
LONG = 60.0


@asynccontextmanager
async def running(work: Work, *arguments: str, lease: float = LONG, file: Path) -> AsyncIterator[DutyProgram]:
    command = (sys.executable, str(CHILD), str(file), *arguments)
    program = DutyProgram(Duty("d", work), HostCommand(command), boot_seconds() + lease, lease, lambda: None)
    try:
        yield program
    finally:
        program.kill("the test is over", failed=False)
        await program.close()


async def reaches(program: DutyProgram, holds: Callable[[ProgramState], bool]) -> ProgramState:
    async with asyncio.timeout(30):
        while not holds(program.state()):
            await asyncio.sleep(0.01)
    return program.state()


def in_phase(phase: ProgramPhase) -> Callable[[ProgramState], bool]:
    return lambda state: state.phase is phase


async def test_a_line_says_that_it_is_ready(file: Path) -> None:
    async with running(Work(ready="at your service"), "--ready", "now at your service!", file=file) as program:
        assert program.state().phase is ProgramPhase.STARTING
        await reaches(program, in_phase(ProgramPhase.READY))


async def test_without_a_line_it_is_ready_after_a_while(file: Path) -> None:
    async with running(Work(ready_after=0.2), file=file) as program:
        ready_in = program.ready_in()
        assert ready_in is not None
        assert 0 < ready_in <= 0.2
        await reaches(program, in_phase(ProgramPhase.READY))
        assert program.ready_in() is None


async def test_a_program_that_is_stopped_has_its_grace(file: Path) -> None:
    async with running(Work(), file=file) as program:
        pid = await began(file)
        program.stop()
        assert program.state().phase is ProgramPhase.STOPPING
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert state.told_to_end
        assert file.read_text().splitlines()[-1].startswith(f"ended {pid}")


async def test_a_program_that_ignores_term_is_killed(file: Path) -> None:
    async with running(Work(stop_grace=0.3), "--deaf", file=file) as program:
        pid = await began(file)
        program.stop()
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert state.told_to_end
        await gone(pid)


async def test_its_last_words_are_kept(file: Path) -> None:
    async with running(Work(), "--die", "3", file=file) as program:
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert (state.clean, state.told_to_end) == (False, False)
        assert state.error == "it ended with status 3\nwhy it died"


async def test_a_clean_end_is_one(file: Path) -> None:
    async with running(Work(), "--die", "0", file=file) as program:
        assert (await reaches(program, in_phase(ProgramPhase.ENDED))).clean


async def test_a_program_that_floods_stderr_neither_hangs_nor_fills_memory(file: Path) -> None:
    async with running(Work(), "--flood", "--die", "4", file=file) as program:
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert state.error.splitlines()[0] == "it ended with status 4"
        assert len(state.error) < 10_000


async def test_a_program_that_does_not_exist_has_failed() -> None:
    program = DutyProgram(
        Duty("d", Work()), HostCommand(("/no/such/program",)), boot_seconds() + LONG, LONG, lambda: None
    )
    try:
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert "cannot start '/no/such/program'" in state.error
    finally:
        await program.close()


async def test_death_by_a_signal_is_a_failure(file: Path) -> None:
    async with running(Work(), file=file) as program:
        os.kill(await began(file), signal.SIGKILL)
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert not state.clean
        assert "signal SIGKILL" in state.error


async def test_its_time_is_over_without_a_word(file: Path) -> None:
    until = boot_seconds() + 4.0
    async with running(Work(), "--deaf", lease=4.0, file=file) as program:
        pid = await began(file)
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert state.told_to_end
        await gone(pid)
    last = float(file.read_text().splitlines()[-1].split()[2])
    assert last <= until + 0.5


async def test_its_time_is_extended(file: Path) -> None:
    until = boot_seconds() + 4.0
    async with running(Work(), lease=4.0, file=file) as program:
        await began(file)
        program.extend(boot_seconds() + LONG)
        async with asyncio.timeout(30):
            while boot_seconds() < until + 0.5:
                await asyncio.sleep(0.05)
        assert program.state().phase is ProgramPhase.READY


async def test_a_time_that_is_over_starts_nothing(file: Path) -> None:
    async with running(Work(), lease=-1.0, file=file) as program:
        assert (await reaches(program, in_phase(ProgramPhase.ENDED))).told_to_end
    assert not file.exists()


@pytest.mark.parametrize("extended", [False, True])
async def test_an_end_by_the_guards_warning_is_none_of_the_programs_own(file: Path, extended: bool) -> None:
    until = boot_seconds() + 4.0
    async with running(Work(), lease=4.0, file=file) as program:
        await began(file)
        async with asyncio.timeout(30):
            while "ended" not in file.read_text():
                await asyncio.sleep(0.001)
        if extended:  # the table is back before the program's end is seen
            program.extend(boot_seconds() + LONG)
        assert boot_seconds() < until
        assert (await reaches(program, in_phase(ProgramPhase.ENDED))).told_to_end


async def test_a_guard_that_does_not_obey_is_killed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.fleet.programs.duty_program.KILL_AFTER_S", 0.2)
    async with running(Work(stop_grace=0.2), file=file) as program:
        pid = await began(file)
        os.killpg(os.getpgid(pid), signal.SIGSTOP)
        program.stop()
        assert (await reaches(program, in_phase(ProgramPhase.ENDED))).told_to_end
        await gone(pid)


async def test_long_last_words_are_cut() -> None:
    say = "import sys; [print('x' * 7_000, file=sys.stderr) for _ in range(9)]; sys.exit(1)"
    command = (sys.executable, "-c", say)
    program = DutyProgram(Duty("d", Work()), HostCommand(command), boot_seconds() + LONG, LONG, lambda: None)
    try:
        state = await reaches(program, in_phase(ProgramPhase.ENDED))
        assert 2_000 < len(state.error) < 3_000
    finally:
        await program.close()


async def test_a_command_that_no_system_takes_has_failed() -> None:
    program = DutyProgram(Duty("d", Work()), HostCommand(("sh", "a\0b")), boot_seconds() + LONG, LONG, lambda: None)
    assert program.state().phase is ProgramPhase.ENDED
    assert "null" in program.state().error
    await program.close()
