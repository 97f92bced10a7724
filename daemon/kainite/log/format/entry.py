"""Entries of the serialization log, and batches of entries.

An entry has the fields of Waltz's transactions (docs/formats.md, *Batch*): the request that wrote it, a
header (its kind), lock hashes (here 64-bit signatures, written and read), data with a CRC-32, and its place
in the log partition, the transaction id: dense, from 0. Small facts about the entry are in
``meta``, so that conflicts can be scheduled without reading any data.

The deltas of an append are compressed together, where its shard is held; a FRAGMENT or UNIT entry has a *piece* of that
(:mod:`kainite.uow.packing`) in place of data.

===========  ==================================================  ================================
kind         meta                                                data, or what the piece holds
===========  ==================================================  ================================
FRAGMENT     :class:`FragmentMeta`                               deltas, a JSON array
UNIT         :class:`UnitMeta`: complete and dispatched          the unit's last deltas, a JSON array
REFIT        :class:`RefitMeta`: judged and signed anew          all deltas of the unit, a JSON array
SCHEME       :class:`SchemeMeta`: what signatures depend on      empty
STATUS       :class:`StatusMeta`: outcomes and decisions         empty
POSITION     :class:`PositionMeta`: a shard's last record        empty
CONTROL      :class:`ControlMeta`: a snapshot, or a part of one  :mod:`kainite.log.state.snapshot`
CONTROL      :class:`ControlMeta`: names of units move on        empty
CONTROL      :class:`ControlMeta`: the stream that is collected  empty
CONTROL      :class:`ControlMeta`: since when a shard is read    empty
CONTROL      :class:`ControlMeta`: a stream has its leases       empty
TRANSACTION  :class:`TransactionMeta`: an application's          the application's own
OPERATION    :class:`OperationMeta`: what a person did or asked  empty
TARGET       :class:`TargetMeta`: outcomes in one of several     empty
===========  ==================================================  ================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec

from kainite.base.position import Position
from kainite.base.value_class import value_class
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.identity import DIGEST_BYTES
from kainite.uow.packing import Piece
from kainite.uow.touches import NOTHING, Touched

SNAPSHOT: Final = "snapshot"
SNAPSHOT_PART: Final = "snapshot-part"
NAMES: Final = "names"
STREAM: Final = "stream"
STARTED: Final = "started"
TARGETS: Final = "targets"
LEASED: Final = "leased"

MISSING: Final = "missing:"
"""The prefix in the names of units that stand in for numbers that did not come."""

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
SequenceNumber: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,128}\Z")]
Digest: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class EntryKind(IntEnum):
    FRAGMENT = 1
    UNIT = 2
    STATUS = 3
    POSITION = 4
    CONTROL = 5
    SCHEME = 6
    REFIT = 7
    TRANSACTION = 8
    OPERATION = 9
    TARGET = 10


class UnitStatus(StrEnum):
    """The statuses of a dispatched unit (docs/state-machines.md, *Unit of work*)."""

    IN_PROGRESS = "in progress"
    COMMITTED = "committed"
    FAILED = "failed"
    BLOCKED = "blocked"
    DISCARDED = "discarded"
    DISCARDING = "discarding"


class Fault(StrEnum):
    """The kind of fault that made a unit fail before it could be applied.

    Attributes:
        MALFORMED: an emitted line was no delta, the unit contradicts itself, or it is too large; no retry can apply it.
        INCOMPLETE: deltas, or the end, did not come in time; when they have come after all, a retry applies it.
        LATE_NUMBER: its number had been given up, and units with later numbers went first, or a unit whose name is not
            remembered any more may have had it; a retry applies it.
        FAR_NUMBER: with ``uowOrder=dense``: its number is so far ahead that the order does not follow it; a retry
            applies the unit without the number.
        MISSING_NUMBER: no unit at all: it stands for numbers that did not come, and can only be discarded.
        LATE: with ``uowEnd=watermark``: it came after its unit, or with ``uowOrder=time`` a unit with a later commit
            time, was dispatched, or its commit time is one that the stream's clock does not reach; a retry applies it.
        MISFIT: deltas do not fit the target's catalogue as it was; they are in the log, and a retry judges them anew.
        TOO_LARGE: of FRAGMENT entries alone: the unit is larger than the log takes, and will fail as MALFORMED.
    """

    MALFORMED = "malformed"
    INCOMPLETE = "incomplete"
    LATE_NUMBER = "late number"
    FAR_NUMBER = "far number"
    MISSING_NUMBER = "missing number"
    LATE = "late"
    MISFIT = "misfit"
    TOO_LARGE = "too large"


@value_class(frozen=True, slots=True, order=True)
class ReqId:
    """The request that an append answers: 16 bytes in the index, with the fields of Waltz's request id.

    All fields are 0 as long as the owner runs in the process that appends.
    """

    client: int = 0
    generation: int = 0
    partition: int = 0
    sequence: int = 0


NO_REQUEST: Final = ReqId()


class Outcome(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """A change of a unit's status, by the apply job or by a person.

    Attributes:
        tid: the unit's transaction id.
        status: the unit's status from now on. IN_PROGRESS after FAILED is a retry.
        instance: the job instance that applied the unit.
        cause: why the unit failed, what it waits for, or who decided.
        at_ms: for a committed unit, the time at which a task learned of the commit, in milliseconds since the epoch by
            the clock of the task's host; None if no task learned of it. It is shown to people alone, so two outcomes
            that differ only in it are equal.
    """

    tid: int
    status: UnitStatus
    instance: int | None = None
    cause: str | None = None
    at_ms: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and self._decided == other._decided

    def __hash__(self) -> int:
        return hash(self._decided)

    @property
    def _decided(self) -> tuple[int, UnitStatus, int | None, str | None]:
        return self.tid, self.status, self.instance, self.cause


class FragmentMeta(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=EntryKind.FRAGMENT.value):
    """Deltas of a unit that is not complete yet, or of one that failed before all its deltas had come.

    Attributes:
        uow: the unit.
        shard: the shard that the deltas came through.
        count: how many deltas the data holds.
        ordinals: the ordinals of the deltas that have one.
        end: the unit's end, when it came with this fragment.
        causes: why the unit will fail, when an emitted line was no delta.
        offending: the emitted line.
        digests: the identities of the deltas that have no ordinal (:mod:`kainite.uow.identity`).
        repeated: how many deltas without an ordinal were dropped, because an equal one had come.
        misfits: why deltas of the data do not fit the target's catalogue.
        fault: INCOMPLETE when the unit is given up here, before its turn; ``causes`` then holds that cause alone, and
            the cause ceases to count when the unit is whole. TOO_LARGE when deltas came that the log does not keep: the
            entry has their tables alone, and the unit's earlier identities and signatures count no more.
        without: the places of deltas in the entry's array that do not count: the unit has them from before.
        time: the latest commit time that the deltas tell, nanoseconds since the epoch.
        arrived_ms: the latest arrival of a record of theirs, milliseconds since the epoch by Kinesis' clock.
        watermark: whether ``time`` and ``arrived_ms`` decide when the unit ends (``uowEnd=watermark``). Otherwise they
            are for people alone (:mod:`kainite.log.views.unit_times`).
    """

    uow: str
    shard: str
    count: Natural
    ordinals: tuple[Natural, ...] = ()
    end: UnitEnd | None = None
    causes: tuple[str, ...] = ()
    offending: str | None = None
    digests: tuple[Digest, ...] = ()
    repeated: Natural = 0
    misfits: tuple[str, ...] = ()
    fault: Fault | None = None
    without: tuple[Natural, ...] = ()
    time: int | None = None
    arrived_ms: int | None = None
    watermark: bool = False


class UnitMeta(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=EntryKind.UNIT.value):
    """A complete unit: its data is that of ``fragments``, then the entry's own.

    Attributes:
        uow: the unit.
        count: how many deltas the unit has.
        shards: the shards that its deltas came through.
        fragments: transaction ids of the FRAGMENT entries that hold its earlier deltas. Of a unit with a fault,
            FRAGMENT entries behind this one may hold deltas that came late.
        number: the source's own dense number.
        kind: normal, correction or reversal.
        cause: why the unit failed before it could be applied; None for a sound unit.
        offending: the emitted line that is the cause, if one is.
        fault: the kind of the cause; None for a sound unit.
        without: as in :class:`FragmentMeta`, for the entry's own array.
        time, arrived_ms, watermark: as in :class:`FragmentMeta`; with ``watermark`` of the whole unit, and no ``time``
            where it tells no place in the order of commits, else of the entry's own deltas and end.
    """

    uow: str
    count: Natural
    shards: tuple[str, ...] = ()
    fragments: tuple[Natural, ...] = ()
    number: int | None = None
    kind: UnitKind = UnitKind.NORMAL
    cause: str | None = None
    offending: str | None = None
    fault: Fault | None = None
    without: tuple[Natural, ...] = ()
    time: int | None = None
    arrived_ms: int | None = None
    watermark: bool = False


class RefitMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.REFIT.value):
    """A failed unit's deltas, judged and signed anew: they replace its deltas, and what it touches.

    Attributes:
        unit: the unit's transaction id, which stays its place in the order.
        uow: the unit.
        count: how many deltas the unit has.
    """

    unit: Natural
    uow: str
    count: Natural


class SchemeMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.SCHEME.value):
    """A scheme of signatures (:mod:`kainite.uow.scheme`), before the first entry that names it.

    Attributes:
        scheme: the scheme's id.
        tables: for each table its digest, and the tables that its foreign keys name.
    """

    scheme: str
    tables: dict[str, tuple[str, tuple[str, ...]]]


class StatusMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.STATUS.value):
    """Outcomes, and how far the outcomes partition has been copied into the log.

    Attributes:
        outcomes: the outcomes, in order of time.
        through: every entry of the outcomes partition up to this id is in the log now.
        requests: ids of the inbox requests (retry, discard) that this entry answers.
        mark: in the outcomes partition, where some of the outcomes are commits: generation and number of the latest
            micro-batch that the target had let in.
    """

    outcomes: tuple[Outcome, ...] = ()
    through: int | None = None
    requests: tuple[str, ...] = ()
    mark: tuple[int, int] | None = None


class PositionMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.POSITION.value):
    """A shard's position: every record of the shard up to the position has been collected.

    Attributes:
        shard: the shard.
        sequence: the position's sequence number, as text: it exceeds 64 bits.
        sub: the record inside an aggregate.
    """

    shard: str
    sequence: SequenceNumber
    sub: Natural = 0

    @classmethod
    def of(cls, shard: str, position: Position) -> PositionMeta:
        """Returns the meta of a shard's position."""
        return cls(shard, str(position.sequence), position.sub)

    @property
    def position(self) -> Position:
        return Position(int(self.sequence), self.sub)


class ControlMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.CONTROL.value):
    """A snapshot of the folded log, a part of one, names of dispatched units that move on, or a fact about the reading.

    Attributes:
        what: ``snapshot``; ``snapshot-part``: bytes of a snapshot whose ``snapshot`` entry comes later; ``names``;
            ``stream``: the shards' positions are of the stream that ``key`` identifies; those of another one end here;
            ``started``: shards at LATEST and AT_TIMESTAMP, of the stream ``key`` where there are several, are read
            from the time ``since`` on; it holds until the log adopts another stream; ``leased``: the stream ``key`` is
            awaited no more (:mod:`kainite.log.collecting.reported_shards`); or ``targets``: units that are dispatched
            from here on belong to the targets that ``key`` says
            (:meth:`kainite.settings.assignment.TableAssignment.as_text`).
        since: of ``snapshot``: it is the state that the entries below this id add up to. Of ``started``: milliseconds
            since the epoch, by Kinesis' clock; 0 where its shards are read from TRIM_HORIZON.
        count, key, forget: of ``names``, as :meth:`kainite.log.state.recent_units.RecentUnits.move` takes them.
    """

    what: str = SNAPSHOT
    since: int | None = None
    count: Natural = 0
    key: str | None = None
    forget: Natural = 0


class TargetMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.TARGET.value):
    """Outcomes of units in one of several targets; the STATUS entry behind it has what they mean for the whole units.

    Attributes:
        target: the target's name.
        outcomes: the outcomes there, in order of time.
        through: every entry of the target's outcomes partition up to this id is in the log now; None where a person has
            decided on the target's part of a unit.
    """

    target: str
    outcomes: tuple[Outcome, ...]
    through: int | None


class TransactionMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.TRANSACTION.value):
    """A transaction of an application: such entries have log partitions of their own, without any other entry.

    The ``written`` that the entry touches are the locks that the transaction raises, as unsigned 32-bit numbers.

    Attributes:
        header: a number that the application chooses.
    """

    header: int


class OperationKind(StrEnum):
    """The kinds of operations of a person; an entry may have one of a later release."""

    RETRY = "retry units"
    DISCARD = "discard units"
    CORRECT = "correct a unit"
    REPAIR = "repair rows"
    SKIP = "skip numbers"
    PAUSE = "pause applying"
    RESUME = "resume applying"
    HAND_OVER = "hand over the log"
    RESET = "reset checkpoints"
    MOVE_LEASE = "move a lease"
    RESTART_CHILD = "restart a child"
    DUTY = "change a duty"
    WORKER = "change a worker"
    ADOPT_STREAM = "adopt a stream"
    FORGET_STREAM = "forget a stream"


class OperationResult(StrEnum):
    """What has become of an operation.

    Attributes:
        ASKED: it was begun, or handed to who carries it out; whether it was carried out is not noted (yet).
        DONE: it was carried out.
        REFUSED: nothing was changed.
        FAILED: it ended with an error; a part of it may have been carried out.
    """

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class OperationMeta(msgspec.Struct, frozen=True, array_like=True, tag=EntryKind.OPERATION.value):
    """What a person did: the latest entry of an id counts (:mod:`kainite.log.state.operations`).

    Attributes:
        id: of the operation; no other one has it.
        what: one of :class:`OperationKind`.
        about: the unit, the filter, the shard, the duty that it is about.
        who: the person, as ``user@host``, or as the console has authenticated the person.
        why: the reason that was given; may be empty.
        at_ms: when it was asked for, milliseconds since the epoch by the clock of where it was asked.
        result: one of :class:`OperationResult`.
        outcome: what has become of it, as a sentence; empty while nothing has.
        count, refused: of an operation on the units that a filter selects: so many were changed, and so many not.
        through: of such an operation: the units up to this transaction id were looked at.
        below: of such an operation: it is not about units with this transaction id or a higher one.
    """

    id: str
    what: str
    about: str
    who: str
    why: str
    at_ms: int
    result: str
    outcome: str = ""
    count: Natural = 0
    refused: Natural = 0
    through: int = -1
    below: Natural = 0


Meta: TypeAlias = (
    FragmentMeta
    | UnitMeta
    | StatusMeta
    | PositionMeta
    | ControlMeta
    | RefitMeta
    | SchemeMeta
    | TransactionMeta
    | OperationMeta
    | TargetMeta
)


@value_class(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        touched: the rows and tables that its deltas touch, or the locks of a transaction.
        data: the entry's data; empty if the entry has a piece, and when only the batch's index was read.
        piece: the entry's deltas, compressed with those of other entries; None without a piece, and when only the index
            was read.
        signed: the signatures in ``touched`` as they came to who makes the entry, written then read, 64-bit integers,
            big-endian; may be empty.
    """

    kind: EntryKind
    meta: Meta
    touched: Touched = NOTHING
    data: bytes = b""
    req_id: ReqId = NO_REQUEST
    piece: Piece | None = None
    signed: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries that became durable together, at ``first_id``, ``first_id + 1`` …

    Attributes:
        first_id: transaction id of the first entry.
        generation: the generation of the owner that wrote the batch.
        time_ms: the time at which the batch was formed, in milliseconds since the epoch by the owner's clock.
        entries: the entries, in order.
        encoded: the batch's bytes, once they were made: the store and the log's followers get the same bytes
            (:func:`kainite.log.format.batch_codec.encode`).
    """

    first_id: int
    generation: int
    time_ms: int
    entries: tuple[Entry, ...]
    encoded: list[tuple[bytes, bytes]] = field(default_factory=list, init=False, repr=False, compare=False)

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
