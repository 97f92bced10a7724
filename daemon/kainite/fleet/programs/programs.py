"""All programs of one worker. The event loop's own: no method but the closing ones waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Duty
from kainite.fleet.programs.commands import HostCommand, HostCommands
from kainite.fleet.programs.duty_program import DutyProgram
from kainite.fleet.steps.plan import ProgramPhase, ProgramState


class DutyPrograms:
    """Keeps the programs of one worker by the name of their duty.

    Args:
        commands: what the host's files let the worker run.
        lease: seconds of a whole lease.
        news: called when one of them may have got further.
    """

    def __init__(self, commands: HostCommands, lease: float, news: Callable[[], None]) -> None:
        self._commands = commands
        self._lease = lease
        self._news = news
        self._programs: dict[str, DutyProgram] = {}

    def __bool__(self) -> bool:
        return bool(self._programs)

    def states(self) -> dict[str, ProgramState]:
        """Returns how far each program is."""
        return {name: program.state() for name, program in self._programs.items()}

    def next_ready(self) -> float | None:
        """Returns the seconds until one of the programs is ready by itself, or late; None when none will be either."""
        left = [due for program in self._programs.values() if (due := program.ready_in()) is not None]
        return min(left, default=None)

    def longest_grace(self) -> float:
        """Returns the seconds that the slowest program may take to end."""
        return max((program.duty.work.stop_grace for program in self._programs.values()), default=0.0)

    def start(self, duty: Duty, until: float) -> None:
        """Starts a duty's program; one that may not run here ends at once, with the reason as its error."""
        refusal = ""
        try:
            command = self._commands.of(duty)
        except FleetError as error:
            command, refusal = HostCommand(()), str(error)
        self._programs[duty.name] = DutyProgram(duty, command, until, self._lease, self._news, refusal)

    def extend(self, until: float) -> None:
        """Lets all programs run until a later time of the boot clock."""
        for program in self._programs.values():
            program.extend(until)

    def stop(self, name: str) -> None:
        if name in self._programs:
            self._programs[name].stop()

    def kill(self, name: str, why: str, *, failed: bool) -> None:
        if name in self._programs:
            self._programs[name].kill(why, failed=failed)

    async def forget(self, name: str) -> None:
        """Forgets a program that has ended."""
        if name in self._programs and self._programs[name].state().phase is ProgramPhase.ENDED:
            await self._programs.pop(name).close()

    async def kill_all(self, why: str) -> None:
        """Kills all programs, and returns when they are gone and forgotten."""
        for program in self._programs.values():
            program.kill(why, failed=False)
        ended, self._programs = list(self._programs.values()), {}
        await asyncio.gather(*(program.close() for program in ended))
