"""Assembles pgoutput messages into committed transactions; a state machine without I/O.

States: *between* transactions, or *inside* one (from Begin to Commit). The assembler remembers
relations as long as the connection lives, because the server sends each only once. A crash loses
the transaction that was being assembled; the server sends it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    Message,
    Origin,
    Relation,
    TruncateMessage,
    TypeName,
    UpdateMessage,
)
from kainite.capture.postgresql.replication_frames import format_lsn

RowChange: TypeAlias = InsertMessage | UpdateMessage | DeleteMessage


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A change of one row or of all rows of a table, and the table's description at that time."""

    relation: Relation
    row: RowChange | TruncateMessage


@dataclass(frozen=True, slots=True)
class SourceTransaction:
    """A committed transaction.

    Attributes:
        xid: PostgreSQL's own 32-bit id; PostgreSQL uses it again after four billion transactions.
        commit_lsn: the LSN of the transaction's commit; unique, and ascending in the order of commits.
        end_lsn: the LSN that may be acknowledged once the transaction is safe.
        commit_us: when it committed, microseconds since the Unix epoch, the source's clock.
        changes: in the source's own order.
    """

    xid: int
    commit_lsn: int
    end_lsn: int
    commit_us: int
    changes: tuple[SourceChange, ...]

    @property
    def uow(self) -> str:
        return f"pg-{self.xid}-{format_lsn(self.commit_lsn)}"


@dataclass(slots=True)
class Assembler:
    """Collects messages; :meth:`feed` returns a transaction at its Commit."""

    relations: dict[int, Relation] = field(default_factory=dict)
    begin: BeginMessage | None = None
    changes: list[SourceChange] = field(default_factory=list)

    def feed(self, message: Message) -> SourceTransaction | None:
        """Takes the next message of the connection.

        Returns:
            The transaction that the message completes, also one without changes.

        Raises:
            SourceError: the message does not belong here.
        """
        match message:
            case BeginMessage():
                self._start(message)
            case CommitMessage():
                return self._finish(message)
            case Relation():
                self.relations[message.oid] = message
            case TruncateMessage(relations):
                for oid in relations:
                    self._change(oid, message)
            case InsertMessage() | UpdateMessage() | DeleteMessage():
                self._change(message.relation, message)
            case TypeName() | Origin():
                pass
        return None

    def _start(self, begin: BeginMessage) -> None:
        if self.begin is not None:
            raise SourceError(f"pgoutput: transaction {begin.xid} begins inside {self.begin.xid}")
        self.begin = begin

    def _finish(self, commit: CommitMessage) -> SourceTransaction:
        begin, changes = self.begin, tuple(self.changes)
        if begin is None or begin.final_lsn != commit.commit_lsn:
            raise SourceError(f"pgoutput: commit at {format_lsn(commit.commit_lsn)} without its begin")
        self.begin, self.changes = None, []
        return SourceTransaction(begin.xid, commit.commit_lsn, commit.end_lsn, commit.commit_us, changes)

    def _change(self, oid: int, row: RowChange | TruncateMessage) -> None:
        relation = self.relations.get(oid)
        if self.begin is None or relation is None:
            raise SourceError(f"pgoutput: change of table {oid} outside a transaction, or before its relation")
        self.changes.append(SourceChange(relation, row))
