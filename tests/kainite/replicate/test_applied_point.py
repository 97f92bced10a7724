"""How far the log is with a place of the source's WAL."""

from __future__ import annotations

import pytest

from kainite.log.views.unit_table import LogRow
from kainite.replicate.applied_point import LogStanding, read_standing, standing, stuck_units
from kainite.store.memory import MemoryStore
from kainite.uow.signing import Signing
from support.main_log import MainLog
from support.tables import PETS

BEFORE, PLACE, BEHIND = (f"pg-7-0/{lsn}" for lsn in ("10", "20", "30"))


def row(uow: str, status: str, tid: int | None = 1) -> LogRow:
    return LogRow(uow, id=tid, status=status, cause="why")


@pytest.mark.parametrize(
    ("rows", "collected", "done"),
    [
        ([], False, False),
        ([row(BEFORE, "committed")], False, False),
        ([row("another source", "committed")], False, False),
        ([row(PLACE, "collecting", None)], False, False),
        ([row(PLACE, "in progress")], True, False),
        ([row(PLACE, "committed")], True, True),
        ([row(BEHIND, "committed")], True, True),
        ([row(BEFORE, "discarded"), row(PLACE, "committed")], True, True),
        ([row(BEFORE, "in progress"), row(PLACE, "committed")], True, False),
        ([row(PLACE, "committed"), row(BEHIND, "collecting", None)], True, False),
        ([row(PLACE, "discarded")], True, False),
    ],
)
def test_all_is_applied_when_a_unit_of_the_place_is_and_none_is_left(
    rows: list[LogRow], collected: bool, done: bool
) -> None:
    found = standing(rows, 0x20)
    assert (found.collected, found.is_done) == (collected, done)


def test_units_that_wait_for_a_person_are_named() -> None:
    rows = [row(BEFORE, "failed"), row(PLACE, "blocked"), row(BEHIND, "in progress")]
    assert standing(rows, 0x20).stuck == (f"{BEFORE} (failed: why)", f"{PLACE} (blocked: why)")


def test_where_it_stands_is_told_with_the_part_that_is_to_go_on() -> None:
    assert "kainite extract, kainite run" in str(LogStanding(False, False, 3, ()))
    assert "3 units of the log are not applied yet (kainite apply)" in str(LogStanding(True, False, 3, ()))


def test_a_log_is_read() -> None:
    store = MemoryStore()
    log = MainLog(store, Signing(PETS))
    assert read_standing(store, "0", 0x20) == LogStanding(False, False, 0, ())
    log.unit(PLACE)
    assert read_standing(store, "0", 0x20).left == 1
    log.malformed("broken")
    assert [name.partition(" ")[0] for name in stuck_units(store, "0")] == ["broken"]
