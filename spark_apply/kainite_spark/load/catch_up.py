"""Applies to a table what was held of it while its rows were copied, and makes it live.

:mod:`kainite.replicate.table_ledger` has the rules. Each batch is one transaction, which takes the held deltas and
applies those of units that committed at the table's point or later. Batches go on while the apply job holds more; when
little is left, or the apply job has nothing to do, the fence is locked, what is left is applied, and the table goes
live as the lock is given back. All units that came by then must have had the table's changes: that is looked at under
the lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kainite.base.errors import TargetBusyError, TargetUnavailableError
from kainite.base.retry import Backoff
from kainite.capture.places import commit_place_of
from kainite.log.format.deltas import read_deltas
from kainite.replicate.load_target import DrivenTable
from kainite.replicate.table_load import HeldUnit, is_full
from kainite_spark.targets.contract import Unit

PAUSE_S: Final = 0.5
"""Seconds between two looks whether the apply job has passed the table's point."""

CHECK_S: Final = 30.0
"""Seconds between two looks at the source while the apply job has not passed the point."""

TRIES: Final = 8
"""Times in a row that a batch may meet locked rows, or a target that is away."""

_BACKOFF: Final = Backoff.doubling(0.2, 10.0)


class CatchingUp(Protocol):
    """A session with a target that applies what was held."""

    def catch_up(self, load: str, generation: int, places: Sequence[int], units: Sequence[Unit]) -> None:
        """Takes what is held, and applies units, change by change, in one transaction.

        Args:
            load: the name of the table's load.
            generation: the load's generation.
            places: the places of what was held.
            units: those of its units that are to be applied.

        Raises:
            TargetFencedError: the load was begun, or gone on with, elsewhere, or somebody has taken what was held.
            TargetError: as :meth:`kainite_spark.targets.contract.TargetSession.apply`.
        """

    def close(self) -> None:
        """Closes the connection."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The catching up of one table.

    Attributes:
        load: the table's load, whose rows are all copied.
        position: the table's point.
        session: applies what is held.
        stop: set to end at once; what is held stays held.
        look: called now and then, for progress.
        check: called each :data:`CHECK_S` seconds; raises SourceError where what commits does not reach the log any
            more, since the apply job would never pass the point.
        check_point: called under the lock; raises SourceError where changes behind the point are missing.
    """

    load: DrivenTable
    position: int
    session: CatchingUp
    stop: threading.Event
    look: Callable[[], None]
    check: Callable[[], None] = lambda: None
    check_point: Callable[[], None] = lambda: None

    def run(self) -> bool:
        """Catches up, and makes the table live; tells whether it is, or ``stop`` came first.

        Raises:
            TargetRejectedError: the target refuses a delta.
            TargetFencedError: another driver has taken over.
            TargetUnavailableError: the target is away, or rows are locked, for a while.
            SourceError: what commits does not reach the log any more, or has not.
        """
        check_at = time.monotonic() + CHECK_S
        while not self.stop.is_set():
            self.load.steps.seen()
            self.look()
            if time.monotonic() >= check_at:
                self.check()
                check_at = time.monotonic() + CHECK_S
            while not self.stop.is_set() and is_full(self._batch()):
                self.look()
            if self._is_passed():
                self._go_live()
                return True
            self.stop.wait(PAUSE_S)
        return False

    def _is_passed(self) -> bool:
        """Tells whether the apply job has applied a unit from the table's point on, and so all units before it."""
        found = self.load.found()
        return found is not None and found.reached is not None and found.reached >= self.position

    def _go_live(self) -> None:
        with self.load.nobody_applies():
            while self._batch():
                self.load.steps.seen()
            self.check_point()
            self.load.go_live()

    def _batch(self) -> Sequence[HeldUnit]:
        """Applies what is held longest; returns it. What a lost answer took is not held again."""
        for tries in range(1, TRIES):
            try:
                return self._take()
            except (TargetBusyError, TargetUnavailableError):
                if self.stop.wait(_BACKOFF.after(tries)):
                    raise
        return self._take()

    def _take(self) -> Sequence[HeldUnit]:
        held = self.load.held()
        if held:
            places = [place for one in held for place in one.places]
            self.session.catch_up(self.load.name, self.load.steps.generation, places, self._units(held))
        return held

    def _units(self, held: Sequence[HeldUnit]) -> list[Unit]:
        """Returns the units that the copy does not have."""
        return [
            Unit(one.tid, one.uow, tuple(delta for piece in one.pieces for delta in read_deltas(piece)))
            for one in held
            if (lsn := commit_place_of(one.uow)) is None or lsn >= self.position
        ]
