"""What stands in the serialization log.

An entry has Waltz's fields (reference/waltz.md §1): the request that wrote it, a header (its
kind), lock hashes (here 64-bit signatures, written and read), data with a CRC-32, and its place
in the log partition, the transaction id: dense, from 0. Small facts about the entry stand in
``meta`` so that conflicts can be scheduled without reading any data.

===========  ==================================================  ================================
kind         meta                                                data
===========  ==================================================  ================================
FRAGMENT     :class:`FragmentMeta`                               deltas, a JSON array
UNIT         :class:`UnitMeta`: complete and dispatched          its last deltas, a JSON array
STATUS       :class:`StatusMeta`: outcomes and decisions         empty
POSITION     :class:`PositionMeta`: how far a shard has got      empty
CONTROL      :class:`ControlMeta`: a snapshot of the folded log  the snapshot, JSON
===========  ==================================================  ================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TypeAlias

from kainite.base.position import Position
from kainite.uow.delta import UnitKind


class EntryKind(IntEnum):
    FRAGMENT = 1
    UNIT = 2
    STATUS = 3
    POSITION = 4
    CONTROL = 5


class UnitStatus(StrEnum):
    """The life of a dispatched unit (DESIGN, *The serialization log*)."""

    IN_PROGRESS = "in progress"
    COMMITTED = "committed"
    FAILED = "failed"
    BLOCKED = "blocked"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, order=True)
class ReqId:
    """Who asked for an append: 16 bytes on the wire, as Waltz has them."""

    client: int = 0
    generation: int = 0
    partition: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class FragmentMeta:
    """Deltas of a unit that is not complete yet.

    Attributes:
        uow: the unit.
        shard: the shard (the white paper's queue) that the deltas came through.
        count: how many deltas the data holds.
        ordinals: their ordinals where the source gives them, else empty.
        end_count, number, unit_kind: of the unit's end, when it came with this fragment.
        causes: why the unit will fail, when something emitted for it was no delta.
        offending: what was emitted then.
    """

    uow: str
    shard: str
    count: int
    ordinals: tuple[int, ...] = ()
    end_count: int | None = None
    number: int | None = None
    unit_kind: UnitKind = UnitKind.NORMAL
    causes: tuple[str, ...] = ()
    offending: str | None = None


@dataclass(frozen=True, slots=True)
class UnitMeta:
    """A complete unit: its data are those of ``fragments``, then the entry's own.

    Attributes:
        uow: the unit.
        count: how many deltas it has.
        shards: the shards that its deltas came through.
        fragments: transaction ids of the FRAGMENT entries that hold its earlier deltas.
        number: the source's own dense number.
        kind: normal, correction or reversal.
        conflict: transaction id of the latest unit in progress that it conflicts with.
        cause: why it failed before it could be applied; None for a sound unit.
        offending: what was emitted, when that is the cause.
    """

    uow: str
    count: int
    shards: tuple[str, ...] = ()
    fragments: tuple[int, ...] = ()
    number: int | None = None
    kind: UnitKind = UnitKind.NORMAL
    conflict: int | None = None
    cause: str | None = None
    offending: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a unit, or what was decided about it.

    Attributes:
        tid: the unit's transaction id.
        status: what it is now. IN_PROGRESS after FAILED is a retry.
        instance: the job instance that applied it.
        cause: why it failed, or what it waits for, or who decided.
    """

    tid: int
    status: UnitStatus
    instance: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class StatusMeta:
    """Outcomes, and how far the apply job's own log partition has been taken over with them.

    Attributes:
        outcomes: in the order in which they happened.
        through: every entry of the outcomes partition up to this id is in the log now.
        requests: ids of the inbox requests (retry, discard) that this entry answers.
    """

    outcomes: tuple[Outcome, ...] = ()
    through: int | None = None
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PositionMeta:
    """Every record of ``shard`` up to ``position`` has been collected."""

    shard: str
    position: Position


@dataclass(frozen=True, slots=True)
class ControlMeta:
    """A snapshot: folding it gives the same state as folding all entries before it."""

    what: str = "snapshot"


Meta: TypeAlias = FragmentMeta | UnitMeta | StatusMeta | PositionMeta | ControlMeta


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; ``data`` is empty when only the batch's index was read."""

    kind: EntryKind
    meta: Meta
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    data: bytes = b""
    req_id: ReqId = field(default_factory=ReqId)


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries that became durable together, at ``first_id``, ``first_id + 1`` …

    Attributes:
        first_id: transaction id of the first entry.
        generation: of the owner that wrote it.
        time_ms: when it was formed, milliseconds since the epoch by the owner's clock.
        entries: in order.
    """

    first_id: int
    generation: int
    time_ms: int
    entries: tuple[Entry, ...]

    @property
    def last_id(self) -> int:
        return self.first_id + len(self.entries) - 1

    def entries_from(self, first_id: int) -> Iterator[tuple[int, Entry]]:
        """Yields transaction id and entry, in order, without the entries below ``first_id``.

        A store hands out whole batches, so the first one that is read may begin before the id that was asked for.
        """
        for tid, entry in enumerate(self.entries, self.first_id):
            if tid >= first_id:
                yield tid, entry
