"""Tells which open units have waited too long: time counts only while all shards are read near their tips. No I/O.

A unit that is incomplete fails after ``uowTimeoutMillis``, because a source may never send the rest. But the rest may
be on the stream, unread: after an outage, behind a shard that lags, or that nobody can read, or on the way from
TRIM_HORIZON. Then nothing is missing. So two conditions must hold before a unit counts as overdue:

1. For the whole limit, counted since the unit was first seen by this owner, every shard that is to be read was *near
   its tip*. Any other time does not count: during an outage the source may have been away too.
2. Every record that arrived before the end of that limit is in the log, from every shard.

The reader of a shard reports an age (:class:`~kainite.log.client.ReadingReport`): every record that arrived in the
shard longer ago is in the log. *The horizon* is the time up to which all records of all shards are in the log. A shard
is near its tip while its own horizon is at most ``near`` ago.

===================================================  ============================================================
event                                                effect
===================================================  ============================================================
a mount                                              no time has counted yet: each unit's wait begins anew
no report yet, or no shard known                     nothing counts
a shard without a report, or whose report is old     nothing counts (it is unread, lags, or its records break every
                                                     child: a report tells of what is in the log)
reports stop (the stream, the table or the loop      nothing counts once they are ``near`` old, until they are young
stands still, the host sleeps)                       again; condition 2 holds back what was counted before that
the wall clock steps                                 no effect: times are of a clock that never runs backwards
a shard ends                                         its children take its place, when the lease table says so
===================================================  ============================================================

The waiting times are not durable: after a crash every unit waits from the beginning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Final

from kainite.base.clock import boot_seconds
from kainite.log.client import ReadingReport

NEAR_S: Final = 120.0
"""The oldest horizon of a shard that is near its tip, seconds.

Long enough for a long batch, for a reader that pauses between its calls and for the time between two reports; short
against the default ``uowTimeoutMillis`` of ten minutes.
"""

SHORTEST_NEAR_S: Final = 10.0
"""With a short ``uowTimeoutMillis`` a quarter of it replaces NEAR_S, but at least so many seconds."""


def near_of(timeout: float) -> float:
    """Returns the greatest age of the horizon of a shard near its tip, where units time out after ``timeout``."""
    return min(NEAR_S, max(SHORTEST_NEAR_S, timeout / 4))


@dataclass(frozen=True, slots=True)
class _Begin:
    """The beginning of a unit's wait: the time, and how much time had counted by then, in seconds."""

    at: float
    counted: float


class Waiting:
    """The open units' waiting times.

    Args:
        timeout: how long a unit may wait, seconds.
        clock: returns seconds that never run backwards, and that run on while the host sleeps.
    """

    def __init__(self, timeout: float, clock: Callable[[], float] = boot_seconds) -> None:
        self._timeout = timeout
        self._near = near_of(timeout)
        self._clock = clock
        self._shards: frozenset[str] = frozenset()
        self._behind_parents: frozenset[str] = frozenset()
        self._read: dict[str, float] = {}  # up to which time all records that arrived are in the log
        self._counted = 0.0
        self._at = clock()
        self._began: dict[str, _Begin] = {}

    def report(self, report: ReadingReport) -> None:
        """Takes a reader's report."""
        self._advance()
        self._shards, self._behind_parents = report.shards, report.waiting
        for shard, age in report.read.items():
            self._read[shard] = max(self._read.get(shard, -math.inf), self._at - max(0.0, age))
        for shard in self._read.keys() - self._shards:
            del self._read[shard]

    def overdue(self, names: Set[str]) -> frozenset[str]:
        """Returns the units that have waited too long.

        Args:
            names: the names of all open units; other units are forgotten.
        """
        self._advance()
        now = _Begin(self._at, self._counted)
        for name in self._began.keys() - names:
            del self._began[name]
        self._began.update(dict.fromkeys(names - self._began.keys(), now))
        # The units stand in the order in which their waits began: those that are overdue are in front.
        at, counted = self._horizon - self._timeout, self._counted - self._timeout
        over = itertools.takewhile(lambda one: one[1].counted <= counted and one[1].at <= at, self._began.items())
        return frozenset(name for name, _ in over)

    def behind(self) -> dict[str, float | None]:
        """Returns for each shard that is to be read now the age of its horizon, seconds; None where nobody tells it.

        A shard that waits for its parents is left out.
        """
        now = self._clock()
        to_read = self._shards - self._behind_parents
        return {shard: now - self._read[shard] if shard in self._read else None for shard in to_read}

    @property
    def _horizon(self) -> float:
        """Returns the time up to which all records are in the log; the distant past while that is not known."""
        if not self._shards:
            return -math.inf
        return min(self._read.get(shard, -math.inf) for shard in self._shards)

    def _advance(self) -> None:
        """Counts the time since the last call, if every shard was near its tip for the whole time.

        A horizon that is young enough now was young enough at each moment since the report.
        """
        now = self._clock()
        if now - self._horizon <= self._near:
            self._counted += now - self._at
        self._at = now
