"""Says whether the parts kept up with the load, and which of them did not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_SECONDS_UNDER_WAY = 2.0
"""So many seconds' transactions are under way in a run that keeps up."""


@dataclass(frozen=True, slots=True)
class LoadStanding:
    """Transactions by the stage that they had reached at the moment when pgbench ended.

    Attributes:
        rate: transactions that pgbench was told to make, a second.
        seconds: how long pgbench ran.
        made: transactions that it made.
        captured: of these, extracted from the source.
        dispatched: of these, whole in the log.
        applied: of these, in the target.
        grace: how long the daemon holds each transaction back on purpose, until the watermark passes it, seconds.
    """

    rate: int
    seconds: float
    made: int
    captured: int
    dispatched: int
    applied: int
    grace: float = 0.0

    @property
    def offered(self) -> float:
        """Returns the transactions a second that pgbench made."""
        return self.made / self.seconds

    @property
    def bottleneck(self) -> str | None:
        """Returns the part before which most transactions waited; None if all parts kept up with the rate."""
        spare = self.rate * _SECONDS_UNDER_WAY
        held = min(self.rate * self.grace, self.captured - self.dispatched)
        waiting = {
            "pgbench and the source": self.rate * self.seconds - self.made,
            "the extractor": self.made - self.captured,
            "the stream and the daemon": self.captured - self.dispatched - held,
            "the apply job": self.dispatched - self.applied,
        }
        return max(waiting, key=lambda part: waiting[part]) if sum(waiting.values()) > spare else None
