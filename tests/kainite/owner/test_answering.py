"""What people ask the log's owner for: carried out, recorded with it, and answered."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import OperationMeta, OperationResult, UnitStatus
from kainite.log.state.loading import load_state
from kainite.store.memory import MemoryStore
from support.upkept_log import OwnedLog, P


@pytest.fixture
def log() -> OwnedLog:
    return OwnedLog(MemoryStore())


def recorded(log: OwnedLog) -> list[tuple[str, str, str, str]]:
    """Returns what the log itself remembers, not its owner."""
    known = load_state(log.store, P).operations.all()
    return [(one.what, one.about, one.result, one.outcome) for one in known]


async def test_a_unit_is_resolved_and_recorded_in_one_batch(log: OwnedLog) -> None:
    await log.failed("A", "B")
    await log.ask(action="retry", uow="A")
    (batch,) = [
        batch
        for batch in log.store.read_batches(P, 0)
        if any(isinstance(entry.meta, OperationMeta) for entry in batch.entries)
    ]
    assert len(batch.entries) == 2
    assert log.statuses() == {"A": UnitStatus.IN_PROGRESS, "B": UnitStatus.FAILED}
    await log.ask(action="discard", uow="nobody")
    assert recorded(log) == [
        ("retry units", "unit A", "done", "unit A will be applied again"),
        ("discard units", "unit nobody", "refused", "no unit 'nobody' is failed or in progress; see kainite log show"),
    ]


async def test_a_unit_that_is_asked_about_again_and_again_is_recorded_once(log: OwnedLog) -> None:
    await log.units("A")
    await log.ask(action="discard", uow="A")
    for _ in range(3):
        await log.ask(action="discard", uow="A", again="yes")
    assert [result for _, _, result, _ in recorded(log)] == ["asked"]


async def test_a_request_that_cannot_be_written_is_carried_out_by_the_next_run(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.failed("A")
    request = log.store.put_request(P, {"action": "discard", "uow": "A", "by": "me"})

    async def unavailable(_: object) -> None:
        raise LogUnavailableError("away")

    with monkeypatch.context() as away:
        away.setattr(log, "write", unavailable)
        with pytest.raises(LogUnavailableError):
            await log.run()
    assert (log.statuses(), recorded(log)) == ({"A": UnitStatus.FAILED}, [])
    await log.run()
    assert (log.statuses(), len(recorded(log))) == ({}, 1)
    assert log.store.take_answer(P, request) is not None


async def test_what_the_log_does_not_carry_is_recorded_as_asked_and_then_with_its_outcome(log: OwnedLog) -> None:
    request = {"action": "record", "by": "me", "why": "slow", "what": "move a lease", "about": "shard 7"}
    of = log.store.put_request(P, request)
    await log.run()
    assert recorded(log) == [("move a lease", "shard 7", "asked", "")]
    await log.ask(action="record", of=of, by="somebody else", result="done", outcome="it moved")
    assert recorded(log) == [("move a lease", "shard 7", "done", "it moved")]
    assert [(one.who, one.why) for one in log.state.operations.all()] == [("me", "slow")]


@pytest.mark.parametrize("what", ["pause applying", "resume applying"])
async def test_a_record_is_no_way_to_pause(log: OwnedLog, what: str) -> None:
    answer = await log.ask(action="record", what=what, result="done")
    assert (answer or {})["result"] == "refused"
    assert (recorded(log), log.state.operations.pause) == ([], None)


async def test_an_outcome_that_is_recorded_of_a_pause_does_not_bring_it_back(log: OwnedLog) -> None:
    pause = log.store.put_request(P, {"action": "pause", "by": "me"})
    await log.run()
    await log.ask(action="resume")
    answer = await log.ask(action="record", of=pause, what="move a lease", result="done")
    assert (answer or {})["result"] == "refused"
    assert log.state.operations.pause is None


async def test_the_log_is_handed_over_after_the_answer_and_not_again_by_the_next_owner(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as lost:
        lost.setattr(log.store, "answer_request", lambda *_: None)
        assert await log.ask(action="hand-over") is None
    assert log.given_up == "the log is handed over, as me has asked"
    log.given_up = ""
    await log.run()
    assert log.given_up == ""
    assert [result for _, _, result, _ in recorded(log)] == [OperationResult.DONE]


async def test_the_log_is_handed_over_although_the_answer_cannot_be_written(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the record would say that it is done, and the same owner would go on."""

    def away(*_: object) -> None:
        raise LogUnavailableError("away")

    request = log.store.put_request(P, {"action": "hand-over", "by": "me"})
    with monkeypatch.context() as lost:
        lost.setattr(log.store, "answer_request", away)
        with pytest.raises(LogUnavailableError):
            await log.run()
    assert log.given_up == "the log is handed over, as me has asked"
    log.given_up = ""
    await log.run()
    assert (log.given_up, (log.store.take_answer(P, request) or {})["result"]) == ("", "ok")
    assert [result for _, _, result, _ in recorded(log)] == [OperationResult.DONE]


async def test_the_log_is_handed_over_although_it_is_not_known_whether_that_was_recorded(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = log.write

    async def unanswered(decide: Any) -> None:
        await write(decide)
        raise LogUnavailableError("away")

    log.store.put_request(P, {"action": "hand-over", "by": "me"})
    with monkeypatch.context() as lost:
        lost.setattr(log, "write", unanswered)
        with pytest.raises(LogUnavailableError):
            await log.run()
    assert log.given_up == ""
    await log.run()
    assert log.given_up == "the log is handed over, as me has asked"


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"action": "dance"},
        {"action": "retry", "filter": "?"},
        {"action": "retry", "filter": "{}", "expected": "9" * 5_000},
    ],
)
async def test_a_request_that_nobody_understands_is_refused(log: OwnedLog, request_: dict[str, str]) -> None:
    assert (await log.ask(**request_) or {})["result"] == "refused"
