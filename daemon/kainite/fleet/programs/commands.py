"""The command lines of duties: the user's own, or Kainite's for the kinds that it knows."""

from __future__ import annotations

import sys
from pathlib import Path

from kainite.fleet.model.records import Duty, DutyKind

_WORDS: dict[str, tuple[str, ...]] = {
    DutyKind.LOG: ("log", "serve"),
    DutyKind.EXTRACT: ("extract",),
    DutyKind.APPLY: ("apply",),
}

READY: dict[str, str] = {
    DutyKind.LOG: "log service ready",
    DutyKind.EXTRACT: "extraction started",
    DutyKind.APPLY: "apply job started",
}
"""The event in the log by which each of them says that it is ready."""


def command_of(duty: Duty, settings_file: Path | None) -> tuple[str, ...]:
    """Returns the words of a duty's command line; empty for one that has none.

    Args:
        duty: a duty of a kind that this release knows.
        settings_file: the worker's own; a duty's own file may be relative to its folder.
    """
    words = _WORDS.get(duty.work.kind)
    if words is None:
        return duty.work.command
    folder = settings_file.absolute().parent if settings_file else Path.cwd()
    path = folder / duty.work.properties if duty.work.properties else settings_file
    named = ("-p", str(path)) if path else ()
    return (sys.executable, "-m", "kainite", *words, *named)
