"""The section for the fleet's duties: what runs exactly once somewhere, and this worker's part in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The fleet's table and times, the duties that are declared, and what this worker offers.

    Attributes:
        table: the coordination table's name.
        enabled: whether this worker takes part.
        duties: kinds of duties that are declared with their defaults, each under its kind's name.
        duties_file: a TOML file that declares further ones; None: none.
        labels: what duties may prefer this worker for.
        capacity: the most weight of duties that this worker is given; None: no limit.
        dormant: a cron expression of the minutes in which this worker is to be empty; None: never.
        ping: how often the leader renews its lead and every worker looks at the table, seconds.
        timeout: a leader that was silent for so long may be replaced; a worker after twice that is dead. Seconds.
        rebalance: time between two rebalancings, seconds.
        history_days: how long histories are kept.
    """

    table: str
    enabled: bool = False
    duties: tuple[str, ...] = ()
    duties_file: Path | None = None
    labels: tuple[str, ...] = ()
    capacity: float | None = None
    dormant: str | None = None
    ping: float = 3.0
    timeout: float = 6.0
    rebalance: float = 3_600.0
    history_days: int = 30
