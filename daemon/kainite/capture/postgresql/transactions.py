"""Follows pgoutput messages from transaction to transaction; a state machine without I/O.

States: *between* transactions, or *inside* one (from Begin to Commit). Each change is handed on as it comes, so a
transaction takes no more memory than its largest change. The assembler remembers relations as long as the connection
lives, because the server sends each only once. A crash loses the place in the transaction; the server sends all of it
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    LogicalMessage,
    LostChange,
    Message,
    Origin,
    Relation,
    TruncateMessage,
    TypeName,
    UpdateMessage,
)
from kainite.capture.postgresql.replication_frames import format_lsn, parse_lsn

_NAME: Final = re.compile(r"(?:pg-\d+|repair-\d{8}T\d{6}Z-[0-9a-f]{4})-([0-9A-F]+/[0-9A-F]+)", re.ASCII)

RowChange: TypeAlias = InsertMessage | UpdateMessage | DeleteMessage


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A change of one row or of all rows of a table, and the table's description at that time."""

    relation: Relation
    row: RowChange | LostChange | TruncateMessage


@dataclass(frozen=True, slots=True)
class SourceTransaction:
    """A committed transaction, as it is known from its beginning.

    Attributes:
        xid: PostgreSQL's own 32-bit id; PostgreSQL uses it again after four billion transactions.
        commit_lsn: the LSN of the transaction's commit; unique, and ascending in the order of commits.
        commit_us: when it committed, microseconds since the Unix epoch, the source's clock.
    """

    xid: int
    commit_lsn: int
    commit_us: int

    @property
    def uow(self) -> str:
        return f"pg-{self.xid}-{format_lsn(self.commit_lsn)}"


def commit_lsn_of(uow: str) -> int | None:
    """Returns the commit LSN of the transaction whose unit has this name; None for a unit of another source.

    A repair (:mod:`kainite.replicate.repair`) has the source's rows as of a point, with what committed before it and
    nothing else; so it stands where a transaction would that committed at the point.
    """
    found = _NAME.fullmatch(uow)
    return None if found is None else parse_lsn(found[1])


@dataclass(slots=True)
class Assembler:
    """Follows one connection.

    Attributes:
        relations: the tables' descriptions, by OID.
        transaction: the transaction that is being read; None between two.
    """

    relations: dict[int, Relation] = field(default_factory=dict)
    transaction: SourceTransaction | None = None

    def feed(self, message: Message) -> tuple[SourceChange, ...]:
        """Takes the next message of the connection; returns the changes that it brings.

        Raises:
            SourceError: the message does not belong here.
        """
        match message:
            case BeginMessage():
                self._start(message)
            case CommitMessage():
                self._finish(message)
            case Relation():
                self.relations[message.oid] = message
            case TruncateMessage(relations):
                return tuple(self._change(oid, message) for oid in relations)
            case InsertMessage() | UpdateMessage() | DeleteMessage() | LostChange():
                return (self._change(message.relation, message),)
            case TypeName() | Origin() | LogicalMessage():
                pass
        return ()

    def _start(self, begin: BeginMessage) -> None:
        if self.transaction is not None:
            raise SourceError(f"pgoutput: transaction {begin.xid} begins inside {self.transaction.xid}")
        self.transaction = SourceTransaction(begin.xid, begin.final_lsn, begin.commit_us)

    def _finish(self, commit: CommitMessage) -> None:
        if self.transaction is None or self.transaction.commit_lsn != commit.commit_lsn:
            raise SourceError(f"pgoutput: commit at {format_lsn(commit.commit_lsn)} without its begin")
        self.transaction = None

    def _change(self, oid: int, row: RowChange | LostChange | TruncateMessage) -> SourceChange:
        relation = self.relations.get(oid)
        if self.transaction is None or relation is None:
            raise SourceError(f"pgoutput: change of table {oid} outside a transaction, or before its relation")
        return SourceChange(relation, row)
