"""Stops the apply job in front of the first unit behind a point, for the instant in which a comparison needs it.

:mod:`kainite.replicate.stop_ledger` has the states, the invariants, and what a crash leaves. This module is the apply
job's side: it looks for a request before each selection of units, remembers how far the units go that were begun since
it attends, and holds the job, closed, while the comparison takes its snapshot.

A request never harms the job: where the ledger does not answer, or is not to be read, the request is dropped, and units
are applied as if there were none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from math import inf
from typing import Final

from kainite.base.errors import TargetError
from kainite.base.logs import event
from kainite.capture.places import commit_place_of
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.log.format.entry import UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.replicate.stop_ledger import StopState, UnresolvedUnit
from kainite_spark.plan.backlog import Backlog
from kainite_spark.targets.stop_requests import StopRequest, StopRequests

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 0.25
"""Seconds between two looks for a request while there is none."""

ATTEND_LOOK_S: Final = 0.05
"""Seconds between two looks while a request is attended."""

HOLD_S: Final = 5.0
"""Seconds for which the job stands at a point at most."""

HOLD_LOOK_S: Final = 0.005
"""Seconds between two looks while it stands there."""

LEASE_S: Final = 10.0
"""Seconds after which a request is dropped whose counter stands still."""


@dataclass(slots=True)
class StopPoint:
    """What one apply job does about the requests of comparisons.

    Attributes:
        requests: the requests in the target; None for a target that has none.
        generation: the apply job's generation, which has fenced the target.
        clock: returns seconds that only go forward.
    """

    requests: StopRequests | None
    generation: int
    clock: Callable[[], float] = time.monotonic
    _number: int | None = None  # of the request that is attended
    _position: int | None = None
    _floor: int | None = None  # holds while the position is not known
    _latest: int = 0  # the highest place of the units that were begun since
    _beat: tuple[int, float] = field(default=(-1, 0.0))
    _look_at: float = 0.0
    _complaint: str = ""

    def look(self, backlog: Backlog) -> None:
        """Looks for a request, if it is time to, and tells the backlog behind which place no unit may be selected."""
        if self.requests is not None and self.clock() >= self._look_at:
            self._guarded(lambda: self._look(self.requests))
            self._look_at = self.clock() + (LOOK_S if self._number is None else ATTEND_LOOK_S)
        limit = self._floor if self._position is None else self._position
        backlog.stop_before(None if limit is None else partial(_lies_behind, limit))

    @property
    def longest_wait(self) -> float:
        """Returns for how many seconds the job may wait for units, when it has none."""
        return inf if self._number is None else ATTEND_LOOK_S

    def is_reached(self, backlog: Backlog) -> bool:
        """Tells whether the point is known, and nothing in front of it is left to run."""
        return self._position is not None and backlog.at_stop

    def begins(self, units: Iterable[UnitState]) -> None:
        """Notes the units of a micro-batch before it begins."""
        if self._number is not None:
            self._latest = max(self._latest, max((commit_place_of(unit.uow) or 0 for unit in units), default=0))

    def hold(self, backlog: Backlog, close: Callable[[], int], wait: Callable[[float], bool]) -> None:
        """Holds the job at the point, until the comparison has its snapshot, or for :data:`HOLD_S`.

        Args:
            backlog: is at the point (:meth:`is_reached`); it is let go on afterwards.
            close: shuts out all tasks; returns the number with which the fence is closed.
            wait: waits so many seconds; returns whether the job is to end.

        Raises:
            KainiteError: as ``close`` does.
        """
        assert self._number is not None
        assert self._position is not None
        number, position, began = self._number, self._position, self.clock()
        listed = tuple(starmap(_listed, backlog.in_front_of_stop()))
        micro_batch = close()
        if self._guarded(lambda: self._stand(self.requests, number, micro_batch, listed, began, wait)):
            event(_LOG, logging.INFO, "stopped for a comparison", position=format_lsn(position),
                  unresolved=len(listed), ms=round((self.clock() - began) * 1000))  # fmt: skip
        self._drop()
        backlog.stop_before(None)

    def _stand(
        self,
        requests: StopRequests | None,
        number: int,
        micro_batch: int,
        listed: tuple[UnresolvedUnit, ...],
        began: float,
        wait: Callable[[float], bool],
    ) -> None:
        assert requests is not None
        if not requests.stopped(number, self.generation, micro_batch, listed):
            return
        while self.clock() - began < HOLD_S and not wait(HOLD_LOOK_S):
            found = requests.look()
            if found is None or found.number != number or found.state is not StopState.STOPPED:
                break
        requests.go_on(number, self.generation, round((self.clock() - began) * 1000))

    def _look(self, requests: StopRequests | None) -> None:
        assert requests is not None
        found = requests.look()
        if found is None or not self._concerns(found):
            self._drop()
        elif found.state is StopState.ASKED:
            self._attend(requests, found)
        elif not self._lives(found):
            self._drop()
            requests.go_on(found.number, self.generation, 0)
        elif found.position is not None and self._latest >= found.position:
            self._drop()
            requests.passed(found.number, self.generation)
        else:
            self._position = found.position

    def _concerns(self, found: StopRequest) -> bool:
        """Tells whether a request is new, or the one that this job attends."""
        mine = found.number == self._number and found.generation == self.generation
        return found.state is StopState.ASKED or (mine and found.state is StopState.ATTENDED)

    def _attend(self, requests: StopRequests, found: StopRequest) -> None:
        self._drop()
        if requests.attend(found.number, self.generation):
            self._number, self._floor, self._latest = found.number, found.floor, 0
            self._beat = found.beat, self.clock()

    def _lives(self, found: StopRequest) -> bool:
        """Tells whether the comparison's counter has moved within the lease."""
        if found.beat != self._beat[0]:
            self._beat = found.beat, self.clock()
        return self.clock() - self._beat[1] < LEASE_S

    def _drop(self) -> None:
        self._number = self._position = self._floor = None

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Does something with the ledger; drops the request where that fails. Returns whether it was done."""
        try:
            act()
        except TargetError as error:
            self._drop()
            if str(error) != self._complaint:
                event(_LOG, logging.WARNING, "no comparison can stop this job", error=error)
            self._complaint = str(error)
            return False
        self._complaint = ""
        return True


def _lies_behind(position: int, unit: UnitState) -> bool:
    """Tells whether a unit committed in the source at the point, or later; a unit of no transaction did not."""
    place = commit_place_of(unit.uow)
    return place is not None and place >= position


def _listed(unit: UnitState, status: UnitStatus, cause: str | None) -> UnresolvedUnit:
    return UnresolvedUnit(
        unit.tid,
        unit.uow,
        status.value,
        cause,
        unit.tables,
        unit.unsigned,
        frozenset(unit.written),
        unit.scheme,
        unit.fault is not None,
    )
