"""The section for units of work: how they are collected and ordered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kainite.settings.key import Reload, own
from kainite.settings.kinds.values import choice, millis, path, whole


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
    """The settings by which units of work are collected and ordered."""

    order: UowOrder = own(
        "uowOrder",
        choice(UowOrder),
        Reload.RESTART,
        "Units by arrival, by the source's dense numbers, or (with `uowEnd=watermark`) by their commit times.",
        default=UowOrder.ARRIVAL,
    )
    end: UowEnd = own(
        "uowEnd",
        choice(UowEnd),
        Reload.RESTART,
        "What tells that a unit is complete: `marker`, an end that the record processor emits, with the number of "
        "deltas; `watermark`, for sources that do not say where a transaction ends: every shard has been read past the "
        "unit's commit time (`time` of its deltas) and its last record, by `uowGraceMillis`.",
        default=UowEnd.MARKER,
    )
    grace: float = own(
        "uowGraceMillis",
        millis(0, 3_600_000),
        Reload.RESTART,
        "With `uowEnd=watermark`: how long after its transaction's commit, and after the transaction's record before "
        "it, a record may arrive in the stream. One that takes longer may be late: it fails visibly, as a unit of its "
        "own.",
        default=5.0,
    )
    isolation: Isolation = own(
        "uowIsolation",
        choice(Isolation),
        Reload.RESTART,
        "Whether units that conflict are applied in log order.",
        default=Isolation.SERIALIZE,
    )
    first_number: int = own(
        "uowFirstNumber", whole(0), Reload.RESTART, "The first number under `uowOrder=dense`.", default=1
    )
    timeout: float = own(
        "uowTimeoutMillis",
        millis(100, 604_800_000),
        Reload.RESTART,
        "A unit that is incomplete for so long, while all shards are read near their tips, fails.",
        default=600.0,
    )
    # How many dispatched units are remembered by name at least, to recognise one that is sent again. A name takes about
    # 25 bytes of memory, so these take 50 MB: two days at ten units a second, a quarter of an hour at the most that one
    # key of the table takes.
    dedup_window: int = 2_000_000
    catalogue_file: Path | None = own(
        "catalogueFile",
        path(),
        Reload.RESTART,
        "The target's tables, as `kainite precedence --write` stores them; a shard host then needs no database.",
        default=None,
        otherwise="read from the target",
    )
    precedence_file: Path | None = own(
        "precedenceFile",
        path(),
        Reload.RESTART,
        "Pairs of parent and child tables, where the target declares no foreign keys.",
        default=None,
        otherwise="none",
    )
