"""The parts of a unit in several targets: what each entry does to them, and what they mean for the unit."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import (
    TARGETS,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    Meta,
    Outcome,
    RefitMeta,
    StatusMeta,
    TargetMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.target_parts import seen_by
from kainite.settings.assignment import TableAssignment
from kainite.uow.touches import Touched

C, F, B, P, D, G = (
    UnitStatus.COMMITTED, UnitStatus.FAILED, UnitStatus.BLOCKED, UnitStatus.IN_PROGRESS, UnitStatus.DISCARDED,
    UnitStatus.DISCARDING,
)  # fmt: skip
UNIT = 1


class Log:
    """A folded log with one unit in the targets a and b."""

    def __init__(self) -> None:
        self.state = FoldedLog()
        self.write(EntryKind.CONTROL, ControlMeta(TARGETS, key=TableAssignment((("a", ()), ("b", ("t*",)))).as_text()))
        self.write(EntryKind.UNIT, UnitMeta("U", 2), Touched(tables=("s", "t")))

    def write(self, kind: EntryKind, meta: Meta, touched: Touched | None = None) -> None:
        self.state.apply(self.state.next_id, Entry(kind, meta, touched or Touched()), 0)

    def outcome(self, target: str, status: UnitStatus, cause: str | None = None, at_ms: int | None = None) -> Outcome:
        """Copies an outcome, as the owner does; returns what it means for the unit."""
        outcomes = (Outcome(UNIT, status, 0, cause, at_ms),)
        self.write(EntryKind.TARGET, TargetMeta(target, outcomes, 0))
        (meant,) = self.state.targets.meant(outcomes)
        self.write(EntryKind.STATUS, StatusMeta((meant,), -1))
        return meant

    def decide(self, status: UnitStatus) -> None:
        self.write(EntryKind.STATUS, StatusMeta((Outcome(UNIT, status),)))

    @property
    def parts(self) -> dict[str, UnitStatus]:
        return {name: part.status for name, part in self.state.targets.units.get(UNIT, {}).items()}


@pytest.mark.parametrize(
    ("a", "b", "unit"),
    [(P, P, P), (C, P, P), (C, C, C), (F, C, F), (C, B, B), (F, B, F), (B, P, B), (D, C, D), (D, P, P)],
)
def test_a_units_status_follows_from_its_parts(a: UnitStatus, b: UnitStatus, unit: UnitStatus) -> None:
    log = Log()
    log.outcome("a", a)
    assert log.outcome("b", b).status is unit
    assert (UNIT in log.state.units) == (unit not in (C, D))
    assert (UNIT in log.state.targets.units) == (unit not in (C, D))


def test_a_cause_names_its_target_and_the_time_is_that_of_the_last_commit() -> None:
    log = Log()
    assert log.outcome("a", C, at_ms=5).at_ms is None
    assert log.outcome("b", F, "refused").cause == "b: refused"
    assert log.outcome("b", B, "waits for 7").cause == "waits for 7"
    assert log.outcome("b", C, at_ms=9) == Outcome(UNIT, C, 0)


def test_a_retry_is_for_the_targets_where_the_unit_failed() -> None:
    log = Log()
    log.outcome("a", B)
    log.outcome("b", F)
    assert not log.state.targets.has_only_failed(UNIT)
    log.decide(P)
    assert log.parts == {"a": B, "b": P}


def test_what_is_discarding_stays_so_until_each_target_has_told() -> None:
    log = Log()
    log.decide(G)
    assert log.outcome("a", F).status is G
    assert log.parts == {"a": G, "b": G}
    assert log.outcome("a", D).status is G
    assert log.outcome("b", C).status is D
    assert log.state.units == {}


def test_a_part_that_is_resolved_does_not_change() -> None:
    log = Log()
    log.outcome("a", C)
    log.outcome("a", F)
    log.decide(G)
    assert log.parts == {"a": C, "b": G}
    assert log.state.targets.has_only_failed(UNIT) is False


def test_one_part_is_left_of_a_unit_whose_remaining_tables_are_where_it_was_replaced() -> None:
    log = Log()
    log.write(EntryKind.UNIT, UnitMeta("V", 1, cause="odd", fault=Fault.MISFIT), Touched(tables=("s", "t")))
    tid = log.state.next_id - 1
    log.write(EntryKind.TARGET, TargetMeta("a", (Outcome(tid, D),), 0))
    log.write(EntryKind.REFIT, RefitMeta(tid, "V", 1), Touched(tables=("s",)))
    assert {name: part.status for name, part in log.state.targets.units[tid].items()} == {"a": D, "b": F}
    log.write(EntryKind.REFIT, RefitMeta(tid, "V", 1), Touched(tables=("t", "tt")))
    assert {name: part.tables for name, part in log.state.targets.units[tid].items()} == {"a": ("s",), "b": ("t", "tt")}


def test_a_target_sees_its_own_part_alone() -> None:
    log = Log()
    log.outcome("a", F, "refused")
    unit = log.state.units[UNIT]
    seen = {name: seen_by(name, unit, log.state.targets) for name in ("a", "b", "c", "")}
    assert {name: one and (one.status, one.cause) for name, one in seen.items()} == {
        "a": (F, "refused"), "b": (P, None), "c": None, "": (F, "a: refused"),
    }  # fmt: skip
    log.outcome("a", C)
    assert seen_by("a", log.state.units[UNIT], log.state.targets) is None


def test_units_keep_the_targets_that_they_were_dispatched_for() -> None:
    log = Log()
    log.write(EntryKind.CONTROL, ControlMeta(TARGETS, key=TableAssignment((("a", ()), ("b", ("x",)))).as_text()))
    log.write(EntryKind.UNIT, UnitMeta("V", 1), Touched(tables=("t",)))
    assert log.parts == {"a": P, "b": P}
    assert {name: part.tables for name, part in log.state.targets.units[3].items()} == {"a": ("t",)}


def test_a_snapshot_is_that_of_the_fold() -> None:
    log = Log()
    log.outcome("b", F, "refused")
    read = snapshot.load(snapshot.dump(log.state))
    assert (read.targets.units, read.targets.through, read.targets.assignment) == (
        log.state.targets.units, {"b": 0}, log.state.targets.assignment,
    )  # fmt: skip
    assert read.targets.counts() == {"a": (1, 0), "b": (1, 1)}


def test_a_log_of_one_target_has_no_parts_and_no_section_of_them() -> None:
    state = FoldedLog()
    state.apply(0, Entry(EntryKind.UNIT, UnitMeta("U", 1), Touched(tables=("s",))), 0)
    assert state.targets.units == {}
    assert b"targets" not in snapshot.dump(state)
