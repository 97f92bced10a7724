"""A unit that is larger than the log takes fails for good, holds back its tables, and takes no more memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from kainite.base.position import Position
from kainite.log.collecting import too_large
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire, release
from kainite.log.format.entry import Entry, EntryKind, Fault, Outcome, StatusMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_state import UnitState
from kainite.settings import UowEnd, UowOrder, UowSettings
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched
from support.log_builders import fragment

MOST = 10


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(too_large, "MOST_DELTAS", MOST)
    monkeypatch.setattr(too_large, "MOST_SIGNATURES", 3 * MOST)


class Log:
    """Entries as they were decided, with the state that decided them."""

    def __init__(self, rules: UowSettings) -> None:
        self.rules, self.state, self.entries = rules, FoldedLog(), list[Entry]()
        self.sequences = itertools.count(1)

    def bring(self, *fragments: Fragment) -> list[Entry]:
        decided = collect(self.state, self.rules, "s", Position(next(self.sequences)), fragments, 0)
        self.entries += decided
        return decided

    def time_out(self) -> None:
        self.entries += expire(self.state, self.rules, 0, list(self.state.open))

    def unit(self, uow: str) -> UnitState:
        found = self.state.find(uow)
        assert found is not None
        return found

    def replays(self) -> bool:
        """Returns whether the entries, and a snapshot, give the same state again."""
        again = FoldedLog()
        for tid, entry in enumerate(self.entries):
            again.apply(tid, entry, 0)
        dumped = snapshot.dump(self.state)
        return snapshot.dump(again) == dumped == snapshot.dump(snapshot.load(dumped))


def part(first: int, many: int, *, table: str = "t", count: int | None = None, number: int | None = None) -> Fragment:
    made = fragment("T", range(first, first + many), count=count, number=number, first_ordinal=first)
    return replace(made, touched=Touched(made.touched.written, frozenset(), (table,), (), "scheme"))


def test_a_unit_of_the_most_deltas_is_sound() -> None:
    log = Log(UowSettings())
    log.bring(part(0, MOST - 1))
    log.bring(part(MOST - 1, 1, count=MOST))
    assert (log.unit("T").status, log.unit("T").count) == (UnitStatus.IN_PROGRESS, MOST)


@pytest.mark.parametrize("last", [1, MOST], ids=["with its last delta", "with many"])
def test_one_with_more_fails_for_good_and_holds_its_tables_back(last: int) -> None:
    log = Log(UowSettings())
    log.bring(part(0, MOST))
    log.bring(part(MOST, last, table="u", count=MOST + last))
    unit = log.unit("T")
    assert (unit.status, unit.fault, unit.malformed) == (UnitStatus.FAILED, Fault.MALFORMED, True)
    assert f"more than {MOST} deltas" in (unit.cause or "")
    assert f"more than {MOST} deltas" in (unit.obstacle or "")
    assert (unit.written, unit.read, unit.tables, unit.unsigned) == (frozenset(), frozenset(), ("t", "u"), ("t", "u"))
    assert log.replays()


def test_signatures_have_a_bound_of_their_own() -> None:
    log = Log(UowSettings())
    many = replace(part(0, 1, count=1), touched=Touched(frozenset(range(3 * MOST)), frozenset({-1}), ("t",), ()))
    log.bring(many)
    assert f"more than {3 * MOST} signatures" in (log.unit("T").cause or "")
    assert log.unit("T").unsigned == ("t",)
    assert log.entries[0].piece is None


def test_what_comes_behind_the_bound_takes_no_memory_and_is_kept_nowhere() -> None:
    log = Log(UowSettings())
    log.bring(part(0, MOST))
    log.bring(part(MOST, 1))
    assert log.state.open_deltas == 0, "it delays no shard by deltas that are not held"
    before = len(snapshot.dump(log.state))
    for step in range(100):
        written = log.bring(part(2 * MOST + step, 1))
        assert [entry.kind for entry in written] == [EntryKind.FRAGMENT, EntryKind.POSITION]
        assert written[0].piece is None
    assert len(snapshot.dump(log.state)) - before < 10, "ids of entries have a few more digits"
    log.bring(part(1_000, 1, table="late"))
    log.time_out()
    unit = log.unit("T")
    assert unit.malformed
    assert unit.unsigned == ("late", "t")
    assert log.replays()


def test_a_failed_unit_that_goes_on_collecting_has_the_same_bound() -> None:
    log = Log(UowSettings())
    log.bring(part(0, 1))
    log.time_out()
    assert log.unit("T").fault is Fault.INCOMPLETE
    log.bring(part(1, MOST))
    log.bring(part(MOST + 1, 1, table="u", count=MOST + 2))
    unit = log.unit("T")
    assert (unit.written, unit.unsigned) == (set(), ("t", "u"))
    assert f"more than {MOST} deltas" in (unit.late.causes[0] if unit.late else "")
    assert unit.obstacle is not None
    assert log.replays()
    assert log.state.waiting_bytes == unit.memory


def test_it_takes_its_turn_and_others_go_on() -> None:
    log = Log(UowSettings(order=UowOrder.DENSE, first_number=1))
    log.bring(part(0, MOST), part(MOST, 1, count=MOST + 1, number=2))
    log.bring(fragment("U", [1], count=1, number=3))
    assert log.state.units == {}
    log.bring(fragment("S", [1], count=1, number=1))
    found = [(unit.uow, unit.status is UnitStatus.FAILED) for unit in log.state.units.values()]
    assert found == [("S", False), ("T", True), ("U", False)]
    assert log.replays()


def test_when_it_is_discarded_what_comes_of_it_is_dropped() -> None:
    log = Log(UowSettings())
    log.bring(part(0, MOST))
    log.bring(part(MOST, 1, count=MOST + 1))
    journal = Journal(log.state, 0)
    journal.write(EntryKind.STATUS, StatusMeta((Outcome(log.unit("T").tid, UnitStatus.DISCARDED),)))
    log.entries += journal.entries
    assert [entry.kind for entry in log.bring(part(MOST, 1))] == [EntryKind.POSITION]
    assert log.replays()


def test_the_watermark_ends_it_behind_all_that_came() -> None:
    log = Log(UowSettings(end=UowEnd.WATERMARK, grace=1.0))
    log.bring(replace(part(0, MOST), time=1_000_000, arrived_ms=10))
    log.bring(replace(part(MOST, 1), time=1_000_000, arrived_ms=20))
    log.bring(replace(part(MOST + 1, 1), time=1_000_000, arrived_ms=30))
    assert release(log.state, log.rules, 0, 1_025.0) == []
    log.entries += release(log.state, log.rules, 0, math.inf)
    assert (log.unit("T").malformed, log.state.open) == (True, {})
    assert log.replays()
