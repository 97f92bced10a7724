"""One target of an application as the console sees it: what it is, its micro-batches, who waits for locks in it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kainite.console.batches import MicroBatchRing
from kainite.console.lock_watch import LockWaits, LockWatch
from kainite.settings import Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.settings.targets import assignment_of, each_target

_KINDS: Final = {
    "postgresql": "PostgreSQL", "sqlite": "SQLite", "mariadb": "MariaDB or MySQL", "exec": "a loader",
}  # fmt: skip


class ObservedTarget:
    """A target.

    Args:
        settings: the settings of this target, as if it were the only one.
        tables: how the tables that belong to it are written in the settings; empty: all others.

    Attributes:
        name: its name; empty for an only one.
        batches: the latest micro-batches of its apply job.
        locks: who waits for locks in it.
    """

    def __init__(self, settings: Settings, tables: Sequence[str] = ()) -> None:
        self.name = settings.target_name
        self.tables = tuple(tables)
        self.batches = MicroBatchRing()
        self.locks = LockWatch(settings.apply.target or "")
        self._address = settings.apply.target

    @property
    def kind(self) -> str:
        """Returns its kind, for people."""
        if not self._address:
            return "no target is set"
        name = kind_of(self._address).name
        return _KINDS.get(name, name)


def observed_targets(settings: Settings) -> tuple[ObservedTarget, ...]:
    """Returns the targets of an application in the order of its settings; the only one has no name."""
    tables = dict(assignment_of(settings.of_targets).patterns)
    return tuple(ObservedTarget(each, tables.get(each.target_name, ())) for each in each_target(settings))


def lock_waits(targets: Sequence[ObservedTarget]) -> list[LockWaits]:
    """Returns who waits for locks in each target; one that does not answer keeps no other one waiting."""
    with ThreadPoolExecutor(max_workers=len(targets)) as threads:
        return list(threads.map(lambda target: target.locks.latest(), targets))
