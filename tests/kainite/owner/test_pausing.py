"""A person pauses applying, and resumes it."""

from __future__ import annotations

import pytest

from kainite.base.clock import epoch_ms
from kainite.log.format.entry import OperationResult
from kainite.log.state.loading import load_state
from kainite.store.memory import MemoryStore
from support.upkept_log import OwnedLog, P


@pytest.fixture
def log() -> OwnedLog:
    return OwnedLog(MemoryStore())


async def test_a_pause_stands_in_the_log_with_who_and_why_until_somebody_resumes(log: OwnedLog) -> None:
    at = epoch_ms()
    assert (await log.ask(action="pause", at=str(at)) or {})["result"] == "ok"
    pause = load_state(log.store, P).operations.pause
    assert pause is not None
    assert (pause.who, pause.why, pause.at_ms) == ("me", "a test", at)
    again = await log.ask(action="pause")
    assert again == {"result": "refused", "message": "applying is paused already, by me"}
    assert (await log.ask(action="resume") or {})["message"] == "applying goes on; it was paused by me"
    assert load_state(log.store, P).operations.pause is None
    assert await log.ask(action="resume") == {"result": "refused", "message": "applying is not paused"}
    results = [operation.result for operation in log.state.operations.all()]
    assert results == [OperationResult.DONE, OperationResult.REFUSED, OperationResult.DONE, OperationResult.REFUSED]


async def test_a_request_whose_answer_was_lost_changes_nothing_twice(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = log.store.put_request(P, {"action": "pause", "by": "me"})
    with monkeypatch.context() as lost:
        lost.setattr(log.store, "answer_request", lambda *_: None)
        await log.run()
    await log.ask(action="resume", by="another")
    await log.run()
    assert log.store.take_answer(P, request) == {"result": "ok", "message": "done before"}
    assert log.state.operations.pause is None
