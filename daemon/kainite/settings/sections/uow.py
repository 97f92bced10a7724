"""The section for units of work: how they are collected and ordered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class UowOrder(StrEnum):
    """The order of release of complete units: as they arrive, by their dense numbers, or by their commit times."""

    ARRIVAL = "arrival"
    DENSE = "dense"
    TIME = "time"


class UowEnd(StrEnum):
    """What tells that a unit is complete: an end that its source sends, or that the stream was read far enough."""

    MARKER = "marker"
    WATERMARK = "watermark"


class Isolation(StrEnum):
    """The isolation of units of work that conflict: applied in log order, or in any order."""

    SERIALIZE = "serialize"
    RELAXED = "relaxed"


@dataclass(frozen=True, slots=True)
class UowSettings:
    """The settings by which units of work are collected and ordered.

    Attributes:
        order: when a complete unit is released; TIME needs ``end`` to be WATERMARK.
        end: what tells that a unit is complete.
        grace: with WATERMARK, how long after a unit's commit, and after its record before, a record may come, seconds.
        isolation: whether units that conflict are applied in log order.
        first_number: the first unit's number under DENSE.
        timeout: a unit that is incomplete for so long fails, seconds.
        dedup_window: how many dispatched units are remembered by name at least, to recognise one that is sent again.
        catalogue_file: the target's tables; None: they are read from the target.
        precedence_file: pairs of parent and child tables, where the target declares no foreign keys.
    """

    order: UowOrder = UowOrder.ARRIVAL
    end: UowEnd = UowEnd.MARKER
    grace: float = 5.0
    isolation: Isolation = Isolation.SERIALIZE
    first_number: int = 1
    timeout: float = 600.0
    dedup_window: int = 2_000_000
    catalogue_file: Path | None = None
    precedence_file: Path | None = None
