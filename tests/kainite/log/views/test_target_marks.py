"""How far each of several targets is, and what each has of a unit."""

from __future__ import annotations

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.views.target_marks import in_targets, read_marks, rows_of_target
from kainite.log.views.unit_table import read_present_rows
from kainite.owner.target_outcomes import assignment_entries
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from support.outcomes_log import OutcomesLog
from support.upkept_log import OwnedLog

TWO = TableAssignment((("a", ()), ("b", ("t",))))


async def test_a_mark_is_the_first_unit_that_is_not_resolved_also_before_the_owner_has_copied_it() -> None:
    log = OwnedLog(MemoryStore())
    await log.write(lambda state: assignment_entries(state, TWO))
    await log.units("one", "two")
    first, second = log.state.units
    job = OutcomesLog(log.store, target="a")
    found = read_marks(log.store, "0", TWO.names)
    assert (found.marks, found.common) == ({"a": first, "b": log.state.next_id}, first)

    job.report(Outcome(first, UnitStatus.COMMITTED), Outcome(second, UnitStatus.FAILED, 0, "refused"))
    found = read_marks(log.store, "0", TWO.names)
    assert (found.marks["a"], found.common) == (second, second)
    await log.run()
    rows = read_present_rows(log.store, "0")
    assert [in_targets(row, found.parts) for row in rows if row.id == second] == [{"a": "failed"}]
    assert [(row.uow, row.status, row.cause) for row in rows_of_target(rows, found.parts, "a")] == [
        ("two", "failed", "refused")
    ]
    assert rows_of_target(rows, found.parts, "b") == []


async def test_one_target_has_a_mark_too() -> None:
    log = OwnedLog(MemoryStore())
    await log.units("one", "two")
    first, second = log.state.units
    OutcomesLog(log.store).report(Outcome(first, UnitStatus.COMMITTED))
    assert read_marks(log.store, "0", ()).common == second


async def test_a_file_that_is_ahead_of_the_logs_owner_passes_no_unit() -> None:
    """Shows: units that were dispatched for another target, or for one without a name, hold the common mark."""
    log = OwnedLog(MemoryStore())
    await log.units("before")
    (before,) = log.state.units
    assert read_marks(log.store, "0", TWO.names).common == before
    OutcomesLog(log.store).report(Outcome(before, UnitStatus.COMMITTED))
    await log.run()
    await log.write(lambda state: assignment_entries(state, TWO))
    await log.units("one")
    (one,) = log.state.units
    found = read_marks(log.store, "0", ("b", "c"))
    assert (found.marks, found.common) == ({"b": log.state.next_id, "c": log.state.next_id, "a": one}, one)
