"""The command lines of duties: what a host's own files let its worker run, and nothing else.

Duties come from the fleet's table, and whoever may write one item of that table could otherwise run any command on
every host of the fleet, with the daemon's rights. So the table decides *which* duties run where; the host decides
*what* runs:

* a duty that the host's files declare (``fleetDuties``, ``fleetDutiesFile``) runs as they declare it, whatever command
  its record names;
* any other duty, such as one by ``kainite fleet add``, runs where ``fleetCommands`` lists its command line;
* nothing else runs: the duty fails, and its error says why.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kainite.base.errors import FleetError
from kainite.fleet.model.records import KAINITE_WORDS, Duty, DutyKind, Work

READY: dict[str, str] = {
    DutyKind.LOG: "log service ready",
    DutyKind.EXTRACT: "extraction started",
    DutyKind.APPLY: "apply job started",
    DutyKind.CONSOLE: "console ready",
    DutyKind.VERIFY: "comparisons started",
}
"""The event in the log by which each of them says that it is ready."""


@dataclass(frozen=True, slots=True)
class HostCommand:
    """What runs for a duty: the words of its command line, and the AWS profile of its program, where it has one."""

    words: tuple[str, ...]
    aws_profile: str | None = None


@dataclass(frozen=True, slots=True)
class HostCommands:
    """What a host's files let its worker run.

    Attributes:
        declared: the duties that they declare, by name.
        allowed: command lines of other duties, as :attr:`~kainite.fleet.model.records.Work.command_line` has them.
        settings_file: the worker's own.
        aws_profile: whose AWS credentials the user's programs find; Kainite's own kinds have the daemon's.
    """

    declared: Mapping[str, Work]
    allowed: frozenset[str]
    settings_file: Path | None
    aws_profile: str | None = None

    def of(self, duty: Duty) -> HostCommand:
        """Returns what runs for a duty here.

        Raises:
            FleetError: the files neither declare the duty nor allow its command.
        """
        if (declared := self.declared.get(duty.name)) is not None:
            return self._command(declared)
        if duty.work.command_line not in self.allowed:
            raise FleetError(
                f"this host's files do not declare the duty {duty.name!r}, and fleetCommands does not list its command:"
                f" {duty.work.command_line}"
            )
        return self._command(duty.work)

    def _command(self, work: Work) -> HostCommand:
        profile = self.aws_profile if work.kind == DutyKind.PROGRAM else None
        return HostCommand(command_of(work, self.settings_file), profile)


def command_of(work: Work, settings_file: Path | None) -> tuple[str, ...]:
    """Returns the words of a duty's command line; empty for one that has none.

    Args:
        work: a duty's, of a kind that this release knows.
        settings_file: the worker's own; a duty's own file may be relative to its folder.
    """
    words = KAINITE_WORDS.get(work.kind)
    if words is None:
        return work.command
    folder = settings_file.absolute().parent if settings_file else Path.cwd()
    path = folder / work.properties if work.properties else settings_file
    named = ("-p", str(path)) if path else ()
    return (sys.executable, "-m", "kainite", *words, *named)
