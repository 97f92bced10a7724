"""Requests that have waited for too long: refused, recorded, and never carried out."""

from __future__ import annotations

import pytest

from kainite.base.clock import epoch_ms
from kainite.log.format.entry import OperationResult, UnitStatus
from kainite.log.state.loading import load_state
from kainite.owner import bulk
from kainite.owner.expiry import EXPIRES_S, EXPIRING
from kainite.store.memory import MemoryStore
from support.upkept_log import OwnedLog, P

REQUESTS = {
    "retry": {"uow": "A"}, "discard": {"uow": "A"}, "correct": {"uow": "A", "name": "B", "deltas": "[]"},
    "repair": {"name": "B", "since": "0", "rows": "1", "deltas": ""}, "skip": {"number": "3"}, "pause": {},
    "resume": {}, "hand-over": {},
}  # fmt: skip


def old() -> str:
    """Returns a time since which a request has waited for too long."""
    return str(epoch_ms() - int(EXPIRES_S * 1000) - 60_000)


@pytest.fixture
def log() -> OwnedLog:
    return OwnedLog(MemoryStore())


@pytest.mark.parametrize("action", EXPIRING)
async def test_what_has_waited_for_too_long_is_refused_and_recorded_and_changes_nothing(
    log: OwnedLog, action: str
) -> None:
    await log.failed("A")
    for asked in (REQUESTS[action], {**REQUESTS[action], "filter": "{}"}):
        before = log.state.next_id
        answer = await log.ask(action=action, at=old(), **asked)
        assert answer is not None
        assert answer["result"] == "refused"
        assert answer["message"].startswith("expired: it waited 1")
        assert "more than 15 min, and was not carried out" in answer["message"]
        assert log.state.next_id == before + 1  # the record alone
        assert log.statuses() == {"A": UnitStatus.FAILED}
        assert (log.state.operations.pause, log.given_up) == (None, "")
    for one in load_state(log.store, P).operations.all():
        assert (one.who, one.what, one.result) == ("me", EXPIRING[action], OperationResult.REFUSED)


async def test_a_request_that_waited_less_or_does_not_say_is_carried_out(log: OwnedLog) -> None:
    await log.failed("A", "B", "C")
    young = str(epoch_ms() - int(EXPIRES_S * 1000) + 600_000)
    for unit, at in (("A", young), ("B", ""), ("C", str(epoch_ms() + 86_400_000))):
        assert (await log.ask(action="retry", uow=unit, at=at) or {})["result"] == "ok"


async def test_an_answer_that_was_lost_is_given_again_however_old(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows it of an owner that crashes behind the append; the next one finds the request older than it may be."""
    await log.failed("A", "B")
    young = str(epoch_ms())
    ids = [
        log.store.put_request(P, {"action": "retry", "uow": "A", "by": "me", "at": young}),
        log.store.put_request(P, {"action": "retry", "uow": "B", "by": "me", "at": old()}),
    ]
    with monkeypatch.context() as lost:
        lost.setattr(log.store, "answer_request", lambda *_: None)
        await log.run()
    monkeypatch.setattr("kainite.owner.answering.epoch_ms", lambda: epoch_ms() + 7_200_000)
    await log.run()
    first, second = (log.store.take_answer(P, one) or {} for one in ids)
    assert first["message"] == "done before"
    assert second["message"].startswith("expired: it waited 2")
    assert log.statuses() == {"A": UnitStatus.IN_PROGRESS, "B": UnitStatus.FAILED}
    assert [one.result for one in log.state.operations.all()] == ["done", "refused"]


async def test_many_units_that_were_begun_are_gone_on_with(log: OwnedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    await log.failed("A", "B", "C")
    monkeypatch.setattr(bulk, "CHUNK", 1)
    monkeypatch.setattr(bulk, "RUN_S", -1.0)
    asked = log.store.put_request(P, {"action": "retry", "filter": "{}", "by": "me", "at": str(epoch_ms())})
    await log.run()
    assert log.store.take_answer(P, asked) is None
    monkeypatch.setattr("kainite.owner.answering.epoch_ms", lambda: epoch_ms() + 7_200_000)
    for _ in range(3):
        await log.run()
    assert (log.store.take_answer(P, asked) or {})["count"] == "3"
    assert set(log.statuses().values()) == {UnitStatus.IN_PROGRESS}
