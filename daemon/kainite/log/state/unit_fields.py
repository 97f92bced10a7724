"""The fields by which every event names a unit of work: which one, what it touches, and the command that helps."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from enum import StrEnum
from typing import Any, Final

_MOST_TABLES: Final = 5


class UnitCommand(StrEnum):
    """What helps: the command of ``kainite uow``."""

    SHOW = "show"  # its cause, what it waits for, what waits for it, and from there to retry or discard
    RETRY = "retry"
    DISCARD = "discard"


def unit_fields(
    uow: str, tid: int | None = None, tables: Collection[str] = (), helps: UnitCommand = UnitCommand.SHOW
) -> dict[str, Any]:
    """Returns the fields of an event about a unit.

    Args:
        uow: the unit's name.
        tid: its transaction id; None while it is being collected.
        tables: the tables that it touches, as far as they are known.
        helps: the command that helps.
    """
    command = f"kainite uow {helps} -p FILE {shlex.quote(uow)}"
    return {"uow": uow, "id": tid, "tables": _named(tables), "help": command}


def _named(tables: Collection[str]) -> str | None:
    names = sorted(tables)
    more = f" and {len(names) - _MOST_TABLES} more" if len(names) > _MOST_TABLES else ""
    return ", ".join(names[:_MOST_TABLES]) + more or None
