"""Waits until the fleet's duties run, and counts how often each was started, as the fleet's table has it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kainite.base.errors import DemoError, FleetError
from kainite.fleet.model.records import Picture, Subject
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.store.contract import FleetStore

_LOOK_EVERY = 0.25
_HISTORY_LINES = 1_000


class FleetWatch:
    """The duties of a run.

    Args:
        store: the fleet's table.
        duties: the names of the duties that must run; none for a run without a fleet.
    """

    def __init__(self, store: FleetStore, duties: Sequence[str]) -> None:
        self._store = store
        self._duties = tuple(map(str, duties))

    def wait_until_running(self, limit: float) -> None:
        """Waits until each duty has said that it is ready.

        Raises:
            DemoError: a duty was not ready within ``limit`` seconds, or failed too often.
        """
        deadline = time.monotonic() + limit
        while late := self._late():
            if time.monotonic() > deadline:
                raise DemoError(f"the fleet's duty {late[0]} is not ready after {limit:.0f} s")
            time.sleep(_LOOK_EVERY)

    def starts(self) -> dict[str, int]:
        """Returns how often each duty was ready."""
        return {name: self._starts_of(name) for name in self._duties}

    def _late(self) -> list[str]:
        duties = self._picture().duties if self._duties else {}
        for duty in duties.values():
            if duty.name in self._duties and duty.status is DutyStatus.ERROR:
                raise DemoError(f"the fleet's duty {duty.name} failed too often: {duty.error}")
        return [name for name in self._duties if name not in duties or duties[name].status is not DutyStatus.RUNNING]

    def _picture(self) -> Picture:
        try:
            return self._store.read()
        except FleetError:  # before the first daemon has made the table
            return Picture()

    def _starts_of(self, duty: str) -> int:
        lines = self._store.history(Subject.DUTY, duty, _HISTORY_LINES)
        return sum(line.status == DutyStatus.RUNNING for line in lines)
