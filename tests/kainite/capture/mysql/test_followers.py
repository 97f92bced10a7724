"""Rows that a foreign key's action has changed come behind their parent's."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.events import Event, Kind
from kainite.capture.mysql.followers import Followers

PARENT, PARENT_LAST, CHILD, UNCHECKED_LAST = 0x10, 0x11, 0x12, 0x13
OLD_SERVER, OLD_UNCHECKED = 0x01, 0x02


def rows(kind: int, marks: int, size: int = 8) -> Event:
    return Event(kind, 5, 7, 0, 0, False, False, bytes(6) + marks.to_bytes(2, "little") + bytes(size - 8))


def ordered(*told: tuple[str, int, int], most: int = 1_000) -> str:
    """Returns the names of the events in the order in which they are given."""
    followers: Followers[str] = Followers(most)
    given = [one for name, kind, marks in told for one in followers.add(rows(kind, marks), name)]
    return "".join([*given, *followers.leave()])


UPDATE, DELETE, INSERT = Kind.UPDATE_ROWS_2, Kind.DELETE_ROWS_2, Kind.WRITE_ROWS_2


def test_children_that_follow_a_key_come_behind_each_parent() -> None:
    statement = (("c", UPDATE, CHILD), ("g", UPDATE, CHILD), ("p", UPDATE, PARENT),
                 ("d", UPDATE, CHILD), ("q", UPDATE, PARENT_LAST))  # fmt: skip
    assert ordered(*statement) == "pcgqd"


@pytest.mark.parametrize(
    "statement",
    [
        (("c", DELETE, CHILD), ("d", DELETE, CHILD), ("p", DELETE, PARENT_LAST)),
        (("a", UPDATE, CHILD), ("b", UPDATE, CHILD), ("c", UPDATE, UNCHECKED_LAST)),  # foreign_key_checks = 0
        (("a", INSERT, CHILD), ("b", INSERT, UNCHECKED_LAST)),
        (("a", UPDATE, OLD_UNCHECKED), ("b", UPDATE, OLD_SERVER)),  # InnoDB's own layer
        (("a", UPDATE, CHILD),),
    ],
)
def test_everything_else_keeps_its_order(statement: tuple[tuple[str, int, int], ...]) -> None:
    assert ordered(*statement) == "".join(name for name, _, _ in statement)


def test_a_statement_that_would_hold_too_much_keeps_its_order() -> None:
    statement = (("a", UPDATE, CHILD), ("b", UPDATE, CHILD), ("c", UPDATE, CHILD), ("p", UPDATE, PARENT_LAST))
    assert ordered(*statement, most=16) == "abcp"


def test_nothing_is_held_twice() -> None:
    followers: Followers[str] = Followers()
    assert followers.add(rows(UPDATE, CHILD), "c") == ()
    assert followers.leave() == ("c",)
    assert followers.leave() == ()
