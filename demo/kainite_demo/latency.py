"""Measures end-to-end latency: from the commit in the source to the commit in the target, unit by unit.

Both moments are PostgreSQL's own commit time stamps, on one machine and one clock: the source's
comes with the Commit message, the target's from ``track_commit_timestamp`` of the row by which a
unit is acknowledged. MariaDB's are less exact: its binlog has whole seconds, and a target's moment is that
of the acknowledgement's statement. The apply job trims acknowledgements soon, so the demo reads them during the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kainite_demo.reading import DatabaseReading

# Commits of different connections may become visible a little out of order.
_OVERLAP_US = 2_000_000


class AppliedTimes:
    """The time at which each unit committed in the target, as far as :meth:`look` has seen it."""

    def __init__(self) -> None:
        self.at_us: dict[str, int] = {}
        self._latest = 0

    def look(self, opened: DatabaseReading) -> None:
        """Reads the new acknowledgements; none before the apply job has created its tables."""
        found = opened.applied(self._latest - _OVERLAP_US)
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
