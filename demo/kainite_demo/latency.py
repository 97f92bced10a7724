"""Measures end-to-end latency: from the commit in the source to the commit in the target, unit by unit.

Both moments are PostgreSQL's own commit time stamps, on one machine and one clock: the source's
comes with the Commit message, the target's from ``track_commit_timestamp`` of the row by which a
unit is acknowledged. The apply job trims acknowledgements soon, so the demo reads them during the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import psycopg

# Commits of different connections may become visible a little out of order.
_OVERLAP_US = 2_000_000
_APPLIED = """
    SELECT uow, at FROM (
        SELECT uow, (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint AS at FROM kainite_applied
    ) AS applied WHERE at > %s"""


class AppliedTimes:
    """The time at which each unit committed in the target, as far as :meth:`look` has seen it."""

    def __init__(self) -> None:
        self.at_us: dict[str, int] = {}
        self._latest = 0

    def look(self, connection: psycopg.Connection) -> None:
        """Reads the new acknowledgements; none before the apply job has created its tables."""
        with connection.transaction():
            if connection.execute("SELECT to_regclass('kainite_applied')").fetchone() == (None,):
                return
            found = connection.execute(_APPLIED, [self._latest - _OVERLAP_US]).fetchall()
        self.at_us.update(found)
        self._latest = max([self._latest, *(at for _, at in found)])


def latencies(committed_us: Mapping[str, int], applied_us: Mapping[str, int]) -> list[float]:
    """Returns the seconds from commit to commit of every unit that both sides know, ascending."""
    return sorted((applied_us[uow] - at) / 1e6 for uow, at in committed_us.items() if uow in applied_us)


def percentile(ascending: Sequence[float], percent: float) -> float | None:
    """Returns the nearest-rank percentile; None for an empty sequence."""
    if not ascending:
        return None
    return ascending[max(0, math.ceil(percent / 100 * len(ascending)) - 1)]
