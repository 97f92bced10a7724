"""The parts of units that are followed are those of the log, whatever its owner has copied and truncated."""

from __future__ import annotations

import random
from unittest import mock

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import TARGETS, Outcome, UnitStatus
from kainite.log.state.loading import low_water_mark
from kainite.log.views import followed_targets
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.target_marks import read_marks
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation
from kainite.uow.signing import Signing
from support.main_log import MainLog
from support.outcomes_log import OutcomesLog

TWO = TableAssignment((("a", ()), ("b", ("t*",))))
C, F, B, P = UnitStatus.COMMITTED, UnitStatus.FAILED, UnitStatus.BLOCKED, UnitStatus.IN_PROGRESS


def delta(table: str, key: int) -> Delta:
    return Delta(table, Operation.INSERT, {"id": key}, {"id": key}, {})


class TwoTargets:
    """A log of the targets a and b, and an apply job for each that does as it is told."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.log = MainLog(self.store, Signing(None))
        self.log.assign(TWO)
        self.jobs = {name: OutcomesLog(self.store, target=name) for name in TWO.names}

    def unit(self, uow: str, *tables: str) -> int:
        return self.log.unit(uow, *(delta(table, self.log.state.next_id) for table in tables))

    def report(self, target: str, tid: int, status: UnitStatus) -> None:
        cause = f"{status.value} in {target}" if status in (F, B) else None
        self.jobs[target].report(Outcome(tid, status, 1, cause, 9_000 if status is C else None))

    def follow(self) -> FollowedUnits:
        return FollowedUnits(self.store, "0", targets=TWO.names)


def refreshed(units: FollowedUnits) -> None:
    while not units.refresh().complete:
        pass


def agree(units: FollowedUnits, world: TwoTargets) -> None:
    """Checks what is followed against a reading of the whole log, and against what its owner makes of it."""
    marks = read_marks(world.store, "0", TWO.names)
    assert units.parts is not None
    assert {standing.name: standing.mark for standing in units.standings()} == marks.marks
    assert {tid: dict(units.parts.of(tid)) for tid in marks.parts} == marks.parts
    for standing in units.standings():
        there = [
            (tid, part.status, part.cause)
            for tid, parts in marks.parts.items()
            for name, part in parts.items()
            if name == standing.name and not part.resolved
        ]
        assert [(unit.tid, unit.status, unit.cause) for unit in units.in_target(standing.name)] == there
        assert (standing.waiting, standing.failed) == (len(there), sum(status is F for _, status, _ in there))
    followed = {unit.tid: unit.status for unit in units.dispatched() if not unit.resolved}
    world.log.take_outcomes()
    assert followed == {unit.tid: unit.status for unit in world.log.state.units.values()}


@pytest.mark.parametrize("seed", range(8))
def test_they_are_those_that_the_log_has(seed: int) -> None:
    draw, world = random.Random(seed), TwoTargets()
    units = world.follow()
    for step in range(120):
        left = [
            (tid, name, part.status)
            for tid, parts in read_marks(world.store, "0", TWO.names).parts.items()
            for name, part in parts.items()
            if not part.resolved
        ]
        match draw.randrange(8):
            case 0 | 1:
                world.unit(f"T-{step}", *draw.choice([("s",), ("t",), ("s", "t1"), ("t1", "t2", "u")]))
            case 2 | 3 if tried := [(tid, name) for tid, name, status in left if status is not F]:
                tid, name = draw.choice(tried)
                world.report(name, tid, draw.choice([C, C, F, B, P]))
            case 4:
                world.log.take_outcomes()
            case 5 if left:
                unit = world.log.state.units.get(draw.choice(left)[0])
                if unit is not None:
                    world.log.ask(draw.choice(["retry", "discard"]), unit.uow)
            case 6 if draw.random() < 0.3:
                world.log.take_outcomes()
                world.log.snapshot()
            case _:
                refreshed(units)
                agree(units, world)


def test_what_a_unit_had_in_each_target_is_kept_as_long_as_the_unit() -> None:
    world = TwoTargets()
    units, tid = world.follow(), world.unit("T", "s", "t")
    refreshed(units)
    for name in TWO.names:
        world.report(name, tid, C)
    refreshed(units)
    assert units.parts is not None
    for _ in range(2):
        assert [(name, part.status, part.tables) for name, part in units.parts.of(tid).items()] == [
            ("a", C, ("s",)), ("b", C, ("t",)),
        ]  # fmt: skip
        assert [standing.first for standing in units.standings()] == [None, None]
        world.log.take_outcomes()
        refreshed(units)
    world.log.snapshot()
    refreshed(units)
    assert units.parts.of(tid) == {}


def test_they_begin_at_the_next_reading_where_the_store_did_not_answer_at_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TwoTargets()
    for _ in range(3):
        world.report("a", world.unit("early", "s"), C)
    world.log.take_outcomes()
    world.log.snapshot()
    world.unit("T", "s", "t")
    assert low_water_mark(world.store, "0") > 0, "the entry that says which tables are whose is truncated"
    units = world.follow()
    with monkeypatch.context() as patched:
        patched.setattr(followed_targets, "load_state", mock.Mock(side_effect=LogUnavailableError("throttled")))
        with pytest.raises(LogUnavailableError):
            units.refresh()
    refreshed(units)
    agree(units, world)
    assert [standing.name for standing in units.standings()] == ["a", "b"]


def test_the_name_of_the_target_stands_beside_its_outcomes() -> None:
    world = TwoTargets()
    units, tid = world.follow(), world.unit("T", "s", "t")
    refreshed(units)
    world.report("b", tid, F)
    assert list(units.refresh().outcomes) == ["b"]
    (unit,) = units.in_target("b")
    assert (units.row(unit).status, units.row(unit).cause) == ("failed", "failed in b")
    assert [unit.status for unit in units.in_target("a")] == [P]


def test_a_unit_from_before_there_were_targets_counts_in_each() -> None:
    log = MainLog(MemoryStore(), Signing(None))
    early = log.unit("early", delta("s", 1))
    units = FollowedUnits(log.store, "0", targets=TWO.names)
    refreshed(units)
    assert units.standings() == (), "the log's owner knows of no target yet"
    log.control(TARGETS, TWO.as_text())
    refreshed(units)
    assert [(standing.mark, standing.waiting) for standing in units.standings()] == [(early, 1), (early, 1)]
