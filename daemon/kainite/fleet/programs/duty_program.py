"""One run of a duty's program: its guard as a child of the daemon, its readiness, and how it ended.

==========  =======================================================================  =======================
phase       entered                                                                  left
==========  =======================================================================  =======================
STARTING    at its start                                                             ready, stopped, ended
READY       by a line of its output with the text of ``ready``; without one, when    stopped, ended
            it has run for ``ready_after``
STOPPING    by :meth:`DutyProgram.stop`                                              ended
ENDED       its process has ended, or could not be started
==========  =======================================================================  =======================

The program's output goes to the log line by line. An end within the time in which its guard may have begun to end it,
because the lease was nearly over, is neither a failure nor a clean end of the program's: it is to be started again.
That holds for a while after the lease was extended too: SIGTERM had been sent by then. A guard that does not obey
(somebody has stopped its process group) is killed with its program.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from kainite.base.clock import boot_seconds
from kainite.base.errors import ChildExitedError
from kainite.base.logs import event
from kainite.child.line_buffer import LineBuffer
from kainite.child.piped_process import LOG_LINE, Hooks, PipedProcess, Program, how_it_ended
from kainite.fleet.model.records import Duty
from kainite.fleet.programs.commands import HostCommand
from kainite.fleet.steps.plan import ProgramPhase, ProgramState

logger = logging.getLogger(__name__)

GUARD = Path(__file__).with_name("guard.py")
ERROR_LINES = 5
ERROR_LINE = 500
"""The most characters of each: they stand in the duty's record, which every worker reads at every look."""
KILL_AFTER_S = 5.0
"""Seconds that a guard has to end after its program's grace."""

_runs = itertools.count(1)


class DutyProgram:
    """Runs a duty's program once, from the making of this object to :meth:`close`.

    Args:
        duty: the duty, as it was assigned.
        command: the program's command line, and its credentials.
        until: the program may run until this time of the boot clock.
        lease: seconds of a whole lease.
        news: called when the phase may have changed.
        refusal: why nothing is started; the run has failed then.
    """

    def __init__(
        self,
        duty: Duty,
        command: HostCommand,
        until: float,
        lease: float,
        news: Callable[[], None],
        refusal: str = "",
    ) -> None:
        self.duty = duty
        self._run = next(_runs)
        self._since = boot_seconds()
        self._until = until
        self._warning = min(duty.work.stop_grace, lease / 6) + lease / 20  # as the guard has it, and it may be late
        self._excused_until = float("-inf")
        self._kill_at = float("inf")
        self._news = news
        self._phase = ProgramPhase.STARTING
        self._told_to_end = False
        self._why = ""
        self._error = refusal
        self._output = LineBuffer(LOG_LINE, in_pieces=True)
        self._process: PipedProcess | None = None
        if refusal:
            self._phase = ProgramPhase.ENDED
            return
        grace = duty.work.stop_grace
        words = (sys.executable, "-I", "-S", str(GUARD), str(grace), str(until), str(lease), *command.words)
        program = Program(words, duty.name, "duty", setting="the duty's command", aws_profile=command.aws_profile)
        try:
            self._process = PipedProcess.start(program, Hooks(self._on_output, self._news, self._news, self._on_line))
        except (ChildExitedError, ValueError) as error:  # ValueError: a word with a null character
            self._error, self._phase = str(error), ProgramPhase.ENDED

    def state(self) -> ProgramState:
        """Returns how far the program is now."""
        self._look()
        clean = self._process is not None and self._process.status == 0 and not self._error
        return ProgramState(
            self.duty.name,
            self.duty.assignment,
            self._run,
            self._phase,
            self._since,
            self._told_to_end,
            clean,
            self._error,
        )

    def ready_in(self) -> float | None:
        """Returns the seconds until the program is ready by itself, or takes too long to start; None for neither."""
        if self._phase is not ProgramPhase.STARTING:
            return None
        work = self.duty.work
        after = work.start_timeout if work.ready else min(work.ready_after, work.start_timeout)
        return max(0.0, self._since + after - boot_seconds())

    def extend(self, until: float) -> None:
        """Lets the program run until a later time of the boot clock."""
        if self._process is not None and self._phase is not ProgramPhase.ENDED and until > self._until:
            if self._is_warned():
                self._excused_until = boot_seconds() + self.duty.work.stop_grace + KILL_AFTER_S
            self._until = until
            self._process.write(f"until {until!r}\n".encode())

    def stop(self) -> None:
        """Begins to stop the program, which then has its grace."""
        if self._process is not None and self._phase in (ProgramPhase.STARTING, ProgramPhase.READY):
            self._phase, self._told_to_end = ProgramPhase.STOPPING, True
            self._kill_at = boot_seconds() + self.duty.work.stop_grace + KILL_AFTER_S
            self._process.write(b"stop\n")

    def kill(self, why: str, *, failed: bool) -> None:
        """Kills it and waits, blocking, until it has ended."""
        if self._process is not None and self._phase is not ProgramPhase.ENDED:
            self._why = why
            self._told_to_end = self._told_to_end or not failed
            self._process.kill()
            self._look()

    async def close(self) -> None:
        """Ends the program's remaining processes; returns when they are gone."""
        if self._process is not None:
            await self._process.close(self.duty.work.stop_grace + KILL_AFTER_S, KILL_AFTER_S)

    def _look(self) -> None:
        if self._phase is ProgramPhase.STARTING and not self.duty.work.ready:
            ready = boot_seconds() - self._since >= self.duty.work.ready_after
            self._phase = ProgramPhase.READY if ready else ProgramPhase.STARTING
        process = self._process
        if process is None or self._phase is ProgramPhase.ENDED:
            return
        if process.status is None and boot_seconds() >= self._kill_at:
            process.kill()
        if process.status is not None:
            self._take_end(process, process.status)

    def _take_end(self, process: PipedProcess, status: int) -> None:
        self._phase = ProgramPhase.ENDED
        self._told_to_end = self._told_to_end or self._is_warned() or boot_seconds() < self._excused_until
        if status != 0:
            how = self._why or f"it ended with {how_it_ended(status)}"
            self._error = "\n".join([how, *(line[:ERROR_LINE] for line in list(process.stderr_tail)[-ERROR_LINES:])])

    def _is_warned(self) -> bool:
        """Returns whether its guard may have begun to end it."""
        return boot_seconds() >= self._until - self._warning

    def _on_output(self, data: bytes) -> None:
        for line in self._output.feed(data):
            text = line.text.decode("utf-8", "replace")
            event(logger, logging.INFO, "duty output", duty=self.duty.name, line=text)
            self._on_line(text)

    def _on_line(self, text: str) -> None:
        wanted = self.duty.work.ready
        if wanted and wanted in text and self._phase is ProgramPhase.STARTING:
            self._phase = ProgramPhase.READY
            self._news()
