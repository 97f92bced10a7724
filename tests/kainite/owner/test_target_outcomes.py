"""The owner of a log with several targets: it notes which there are, and copies the outcomes of each."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from kainite.base.errors import LogRequestError
from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.loading import load_state
from kainite.owner.target_outcomes import assignment_entries
from kainite.settings import LogSettings, UowSettings
from kainite.settings.assignment import NO_TARGETS, TableAssignment
from kainite.store.memory import MemoryStore
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.touches import Touched
from support.log_builders import fragment
from support.outcomes_log import OutcomesLog
from support.owned_log import owned_log
from support.upkept_log import RULES, OwnedLog

TWO = TableAssignment((("b", ("t",)), ("a", ())))
SETTINGS = LogSettings("t", "a", enabled=True, poll=0.01, targets=TWO)


async def test_the_mount_notes_the_targets_once() -> None:
    store = MemoryStore()
    for _ in range(2):
        async with owned_log(store, SETTINGS, UowSettings()):
            pass
    state = load_state(store, "0")
    assert (state.targets.assignment, state.next_id) == (TWO, 1)
    async with owned_log(store, replace(SETTINGS, targets=NO_TARGETS), UowSettings()):
        pass
    assert load_state(store, "0").targets.assignment == NO_TARGETS


async def test_the_mount_tells_when_it_changes_the_targets(caplog: pytest.LogCaptureFixture) -> None:
    store, other = MemoryStore(), TableAssignment((("b", ("t", "u")), ("a", ())))
    with caplog.at_level(logging.INFO):
        for targets in (TWO, TWO, other):
            async with owned_log(store, replace(SETTINGS, targets=targets), UowSettings()):
                pass
    told = [record for record in caplog.records if record.getMessage() == "targets changed"]

    assert [record.levelno for record in told] == [logging.INFO, logging.WARNING]
    fields = vars(told[1])["kainite_fields"]
    assert (fields["before"], fields["tables_now"]) == ("the targets b, a", other.as_text())


async def test_a_log_of_one_target_notes_nothing() -> None:
    store = MemoryStore()
    async with owned_log(store, replace(SETTINGS, targets=NO_TARGETS), UowSettings()):
        pass
    assert load_state(store, "0").next_id == 0


async def test_units_that_no_target_of_the_settings_would_apply_keep_the_log_from_being_owned() -> None:
    log = OwnedLog(MemoryStore())
    await log.units("before")
    with pytest.raises(LogRequestError, match="1 unit of the log is not resolved, dispatched for one target"):
        assignment_entries(log.state, TWO)
    OutcomesLog(log.store).report(Outcome(0, UnitStatus.COMMITTED))
    await log.run()
    await log.write(lambda state: assignment_entries(state, TWO))
    await log.units("one")
    with pytest.raises(LogRequestError, match=r"the settings have no target\.b any more, where 1 unit is not applied"):
        assignment_entries(log.state, TableAssignment((("a", ()), ("c", ("t2",)))))
    with pytest.raises(LogRequestError, match="dispatched for the targets b, a; the settings have one target"):
        assignment_entries(log.state, NO_TARGETS)
    assert assignment_entries(log.state, TWO) == ()


async def test_a_table_does_not_move_while_a_unit_is_to_change_it_where_it_was() -> None:
    """Shows it: a target's apply job knows the tables alone that its settings file gives to the target."""
    log = OwnedLog(MemoryStore())
    await log.write(lambda state: assignment_entries(state, TWO))
    await log.write(lambda state: collect(state, RULES, "s0", Position(1), [signed("one", "t")], 0))
    moved = TableAssignment((("b", ("x",)), ("a", ())))
    with pytest.raises(LogRequestError, match=r"table t to target\.a, and unit one is still to change it in target\.b"):
        assignment_entries(log.state, moved)
    OutcomesLog(log.store, target="b").report(Outcome(next(iter(log.state.units)), UnitStatus.COMMITTED))
    await log.run()
    await log.write(lambda state: assignment_entries(state, moved))
    await log.write(lambda state: collect(state, RULES, "s0", Position(2), [misfit("odd", "t")], 0))
    await log.write(lambda state: assignment_entries(state, TWO))
    assert log.state.targets.assignment == TWO


def signed(uow: str, table: str) -> Fragment:
    return replace(fragment(uow, [1], count=1), touched=Touched(tables=(table,)))


def misfit(uow: str, table: str) -> Fragment:
    return replace(signed(uow, table), misfits=(Reject("no such column", table),))


async def test_the_outcomes_of_each_target_are_copied_from_its_own_partition() -> None:
    log = OwnedLog(MemoryStore())
    await log.write(lambda state: assignment_entries(state, TWO))
    await log.units("one")
    tid = next(iter(log.state.units))
    only = OutcomesLog(log.store, target="b")
    only.report(Outcome(tid, UnitStatus.FAILED, 0, "refused"))
    await log.run()
    assert log.state.targets.through == {"b": only.last_id}
    assert log.statuses() == {"one": UnitStatus.FAILED}
    assert log.state.units[tid].cause == "b: refused"
    only.report(Outcome(tid, UnitStatus.COMMITTED))
    await log.run()
    assert log.statuses() == {}
    assert load_state(log.store, "0").targets.units == {}
