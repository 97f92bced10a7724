"""Failed units that a filter selects: each at most once, whatever is killed between two appends."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.unit_filter import UnitFilter
from kainite.owner import bulk
from kainite.owner.bulk import BulkRequest
from kainite.settings import Isolation, UowSettings
from kainite.store.memory import MemoryStore
from support.outcomes_log import OutcomesLog
from support.upkept_log import OwnedLog, P

FAILED, IN_PROGRESS = UnitStatus.FAILED, UnitStatus.IN_PROGRESS
ALL = UnitFilter().as_text()


@pytest.fixture
async def log(monkeypatch: pytest.MonkeyPatch) -> OwnedLog:
    """Returns a log with the failed units A to E, of which two go with each append, and F in progress."""
    monkeypatch.setattr(bulk, "CHUNK", 2)
    log = OwnedLog(MemoryStore())
    await log.failed("A", "B", "C", cause="no parent [23503]")
    await log.failed("D", "E", cause="too long [22001]")
    await log.units("F")
    return log


async def test_the_selected_units_are_resolved_and_counted_in_one_record(log: OwnedLog) -> None:
    answer = await log.ask(action="retry", filter=UnitFilter(causes=("23503",)).as_text())
    assert answer is not None
    assert (answer["message"], answer["count"]) == ("3 units will be applied again", "3")
    assert [name for name, status in log.statuses().items() if status is FAILED] == ["D", "E"]
    answer = await log.ask(action="discard", filter=ALL)
    assert (answer or {})["message"] == "2 units discarded"
    assert log.statuses() == dict.fromkeys("ABCF", IN_PROGRESS)
    noted = [(one.what, one.about, one.count, one.result) for one in log.state.operations.all()]
    assert noted == [("retry units", "cause 23503", 3, "done"), ("discard units", "all", 2, "done")]


@pytest.mark.parametrize("killed_at", range(1, 5))
async def test_a_later_owner_goes_on_where_the_first_one_was_killed(log: OwnedLog, killed_at: int) -> None:
    request = {"action": "retry", "filter": ALL, "by": "me"}
    writes, write = 0, log.write

    async def killed(decide: object) -> None:
        nonlocal writes
        writes += 1
        if writes == killed_at:
            raise LogUnavailableError("killed")
        await write(decide)  # type: ignore[arg-type]

    log.write = killed  # type: ignore[method-assign]
    with pytest.raises(LogUnavailableError):
        await BulkRequest("r", request, UowSettings()).run(log)
    resolved = [name for name, status in log.statuses().items() if status is IN_PROGRESS and name != "F"]
    assert resolved == list("ABCDE")[: 2 * (killed_at - 1)]
    if resolved:  # the first of them fails again meanwhile: it is not retried a second time
        OutcomesLog(log.store).report(Outcome(0, FAILED, 0, "again"))
    log.write = write  # type: ignore[method-assign]
    await log.run()
    log.state = snapshot.load(snapshot.dump(log.state))

    answer = await BulkRequest("r", request, UowSettings()).run(log)

    assert answer is not None
    assert answer["count"] == "5"
    assert log.statuses()["A"] is (FAILED if resolved else IN_PROGRESS)
    assert {log.statuses()[name] for name in "BCDE"} == {IN_PROGRESS}
    assert await BulkRequest("r", request, UowSettings()).run(log) == {"result": "ok", "message": "done before"}


async def test_a_long_request_lets_others_go_on_and_takes_no_unit_that_comes_later(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "RUN_S", -1.0)
    asked = log.store.put_request(P, {"action": "discard", "filter": ALL, "by": "me"})
    await log.run()
    assert list(log.statuses()) == ["C", "D", "E", "F"]
    assert (await log.ask(action="pause") or {})["result"] == "ok"
    assert list(log.statuses()) == ["E", "F"]
    await log.failed("G")
    answer = log.store.take_answer(P, asked)
    assert answer is not None
    assert answer["count"] == "5"
    assert log.statuses() == {"F": IN_PROGRESS, "G": FAILED}


async def test_nothing_is_discarded_where_more_is_selected_than_was_confirmed(log: OwnedLog) -> None:
    answer = await log.ask(action="discard", filter=ALL, expected="4")
    assert answer is not None
    assert answer["message"] == "5 units are selected by now, not 4: look again, and confirm that number"
    assert len(log.statuses()) == 6
    assert [one.result for one in log.state.operations.all()] == ["refused"]
    assert (await log.ask(action="discard", filter=ALL, expected="5") or {})["count"] == "5"


def test_tables_select_nothing_where_the_log_does_not_note_them() -> None:
    rules = UowSettings(isolation=next(one for one in Isolation if one is not Isolation.SERIALIZE))
    with pytest.raises(LogRequestError, match="does not note which tables"):
        BulkRequest("r", {"action": "retry", "filter": UnitFilter(tables=("t",)).as_text()}, rules)
