"""Puts rows that a foreign key's action has changed behind the row of their parent; a state machine without I/O.

InnoDB carries out foreign keys' actions by itself, and the binlog has nothing of them. Since 9.6 MySQL's own layer does
it (``innodb_native_foreign_keys`` is ``OFF``), and logs each row that an action changes, *before* the parent's row, and
marked: no foreign keys are to be checked. A target checks them: a child may name its parent's new key once the parent
has it. PostgreSQL's source has the parent first, too.

So marked updates of a statement are held until the next row that is not marked, which is their parent's, or the parent
of that one. Deletes are not held: a child that goes before its parent is what a target wants. In a session that checks
no foreign keys all rows are marked, those of the statement's end, too: they keep their order. A statement that holds
more than :data:`MOST_HELD` bytes keeps its order, too: where a target's foreign key refuses it, its unit fails.

A crash loses what is held; the server sends all of the transaction again.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from kainite.capture.mysql.events import Event, Kind

MOST_HELD: Final = 8 * 2**20
"""Bytes of events that are held at most."""

_STATEMENT_ENDS: Final = 0x01
_UNCHECKED: Final = 0x02
_ACTED: Final = 0x10 | _UNCHECKED
"""The marks of a row that an action has changed: by MySQL's own layer, without a check."""
_UPDATES: Final = frozenset({Kind.UPDATE_ROWS_1, Kind.UPDATE_ROWS_2})

T = TypeVar("T")


class Followers(Generic[T]):
    """Orders what is made of the events of rows.

    Args:
        most: bytes of events that are held at most.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held: list[T] = []
        self._size = 0

    def add(self, event: Event, made: T) -> tuple[T, ...]:
        """Takes the next event of rows and what is made of it; returns what is given now."""
        marks = int.from_bytes(event.body[6:8], "little")
        follows = event.kind in _UPDATES and marks & _ACTED == _ACTED and not marks & _STATEMENT_ENDS
        if follows and self._size + len(event.body) <= self._most:
            self._held.append(made)
            self._size += len(event.body)
            return ()
        held = self.leave()
        return (*held, made) if marks & _UNCHECKED else (made, *held)

    def leave(self) -> tuple[T, ...]:
        """Returns what is held, where anything but rows comes."""
        held, self._held, self._size = tuple(self._held), [], 0
        return held
