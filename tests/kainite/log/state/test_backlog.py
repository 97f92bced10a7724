"""When too many units wait to be applied, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.log.format.entry import Entry, EntryKind, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.backlog import backlog_of, is_full
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import SIGNATURE_BYTES
from kainite.settings import LogSettings
from kainite.uow.touches import Touched

SETTINGS = LogSettings(table="t", owner="a", backlog_units=3, backlog_bytes=1 << 20)


def put(state: FoldedLog, entry: Entry) -> None:
    state.apply(state.next_id, entry, 0)


def unit(name: str, signatures: int = 1, cause: str | None = None) -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(name, 1, cause=cause), Touched(frozenset(range(signatures))))


def outcome(tid: int, status: UnitStatus) -> Entry:
    return Entry(EntryKind.STATUS, StatusMeta((Outcome(tid, status),)))


def test_so_many_units_are_full_until_one_is_resolved() -> None:
    state = FoldedLog()
    for name in "ABC":
        assert not is_full(state, SETTINGS)
        put(state, unit(name))
    assert is_full(state, SETTINGS)
    put(state, outcome(0, UnitStatus.FAILED))
    assert is_full(state, SETTINGS)
    put(state, outcome(0, UnitStatus.DISCARDED))
    assert not is_full(state, SETTINGS)


def test_a_few_units_of_many_signatures_are_full_too() -> None:
    state = FoldedLog()
    put(state, unit("A", signatures=(1 << 20) // SIGNATURE_BYTES))
    assert is_full(state, SETTINGS)
    assert is_full(snapshot.load(snapshot.dump(state)), SETTINGS)
    put(state, outcome(0, UnitStatus.COMMITTED))
    assert state.waiting_bytes == 0


def test_units_that_are_collected_do_not_count() -> None:
    state = FoldedLog()
    for name in "ABCD":
        put(state, Entry(EntryKind.FRAGMENT, FragmentMeta(name, "s0", 1), Touched(frozenset({1}))))
    assert not is_full(state, SETTINGS)


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ((), "2 are in progress, 0 failed, 0 are blocked; is the apply job running"),
        (
            (UnitStatus.FAILED, UnitStatus.BLOCKED),
            "0 are in progress, 1 failed, 1 is blocked; the first that failed is A",
        ),
    ],
)
def test_the_description_names_what_a_person_can_do(statuses: tuple[UnitStatus, ...], said: str) -> None:
    state = FoldedLog()
    put(state, unit("A"))
    put(state, unit("B"))
    for tid, status in enumerate(statuses):
        put(state, outcome(tid, status))
    assert said in str(backlog_of(state))
    assert is_full(state, replace(SETTINGS, backlog_units=2))
