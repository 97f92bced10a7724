"""The T stage's dialect: what a call becomes, in which order, and what is answered in the child's place."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.markers import Batching
from kainite.base.position import Position
from kainite.base.record import Pieces, RawRecord
from kainite.child.events import (
    Action,
    ActionDone,
    CheckpointRequested,
    Emitted,
    Event,
    ProtocolViolation,
    Rejected,
    Send,
    Span,
)
from kainite.child.markers.dialect import MarkersDialect
from kainite.child.markers.records import render_records
from kainite.child.turns import Turn
from kainite.settings import CheckpointAt, MarkersSettings, OnBadMessage, OnEmptyAnswer
from support.marker_strategies import chunked, cuts
from support.model_worker import ModelWorker

DONE = ActionDone(Action.PROCESS_RECORDS)


def line(*payloads: bytes, first: int = 1, causes: dict[int, str] | None = None) -> Pieces:
    rendered = render_records(
        [
            RawRecord(str(number), "k", base64.b64encode(payload).decode())
            for number, payload in enumerate(payloads, first)
        ],
        None,
    )
    records = b"".join(rendered).splitlines()
    for number, cause in (causes or {}).items():
        records[number - first] += b" " + cause.encode()
    return tuple(record + b"\n" for record in records)


def span(first: int, last: int | None = None) -> Span:
    return Span(Position(first), Position(last or first))


def started(settings: MarkersSettings | None = None, clock: Callable[[], float] = lambda: 0.0) -> MarkersDialect:
    dialect = MarkersDialect(settings or MarkersSettings(), clock)
    assert dialect.initialize("shard-0", "TRIM_HORIZON", 0) == b""
    assert dialect.next_event() == ActionDone(Action.INITIALIZE)
    assert dialect.turn is Turn.OURS
    return dialect


def drained(dialect: MarkersDialect, *said: bytes, error: str | None = None) -> list[Event]:
    """Returns the events of a call in which the child says ``said``, one piece each time that it is waited for."""
    happened: list[Event] = []
    for data in [b"", *said]:
        dialect.receive(data)
        while (event := dialect.next_event()) is not None:
            happened.append(event)
            if isinstance(event, CheckpointRequested):
                assert dialect.turn is Turn.OWED
                assert dialect.next_event() is None
                assert dialect.reply(event, error) == b""
    return happened


def test_a_call() -> None:
    dialect = started()
    assert dialect.process_records(line(b"a", b"b")) == ()
    assert dialect.under_way is None
    assert drained(dialect, b'{"uow":"1"}\n{"uow":"2"}\n\0') == [
        Send(b"a\n"),
        Emitted(b'{"action":"emit","deltas":[{"uow":"1"}]}'),
        Emitted(b'{"action":"emit","deltas":[{"uow":"2"}]}'),
        Send(b"b\n"),
    ]
    assert dialect.under_way == span(2)
    assert drained(dialect, b"\0") == [CheckpointRequested("2", 0), DONE]
    assert dialect.under_way is None
    assert dialect.turn is Turn.OURS


def test_nothing_comes_out_before_eop() -> None:
    dialect = started()
    dialect.process_records(line(b"a"))
    assert drained(dialect, b'{"uow":"1"}\n' * 1000) == [Send(b"a\n")]
    assert dialect.held == 0


@pytest.mark.parametrize(
    ("policy", "checkpoints"), [(CheckpointAt.CALL, ["3"]), (CheckpointAt.ANSWER, ["1", "2", "3"])]
)
def test_checkpoints_are_taken_by_policy(policy: CheckpointAt, checkpoints: list[str]) -> None:
    dialect = started(MarkersSettings(checkpoint=policy))
    dialect.process_records(line(b"a", b"b", b"c"))
    happened = drained(dialect, b"\0", b"\0", b"\0")
    assert [event.sequence for event in happened if isinstance(event, CheckpointRequested)] == checkpoints


def test_checkpoints_are_taken_at_intervals() -> None:
    now = 0.0
    dialect = started(MarkersSettings(checkpoint=CheckpointAt.INTERVAL, checkpoint_interval=10), lambda: now)
    dialect.process_records(line(b"a", b"b", b"c"))
    assert drained(dialect, b"\0") == [Send(b"a\n"), Send(b"b\n")]
    now = 10.0
    assert drained(dialect, b"\0", b"\0") == [CheckpointRequested("2", 0), Send(b"c\n"), DONE]
    dialect.process_records(line(b"d", first=4))
    now = 20.0
    assert drained(dialect, b"\0") == [Send(b"d\n"), CheckpointRequested("4", 0), DONE]


def test_a_checkpoint_that_fails_stops_nothing() -> None:
    dialect = started()
    dialect.process_records(line(b"a"))
    assert drained(dialect, b"\0", error="ThrottlingException")[-1] == DONE


def test_a_cause_is_one_line_of_bounded_length_whatever_the_worker_says() -> None:
    for policy in OnBadMessage:
        dialect = started(MarkersSettings(on_bad_message=policy))
        dialect.process_records(line(b"a"))
        (_, told, *_) = drained(dialect, b'{"bad":"no\\n  JSON ' + b"x" * 100_000 + b'"}\n\0')
        assert isinstance(told, Rejected | ProtocolViolation)
        text = told.cause if isinstance(told, Rejected) else told.reason
        assert "no JSON xxx" in text
        assert len(text) < 2_100


@pytest.mark.parametrize(("said", "rejected"), [(b"\0", True), (b"x\n\0", False), (b'{"bad":"why"}\n\0', True)])
def test_an_answer_by_nothing_may_be_a_report(said: bytes, rejected: bool) -> None:
    for policy in OnEmptyAnswer:
        dialect = started(MarkersSettings(on_empty_answer=policy))
        dialect.process_records(line(b"junk"))
        found = [told.cause for told in drained(dialect, said) if isinstance(told, Rejected)]
        reported = rejected and (policy is OnEmptyAnswer.REPORT or said != b"\0")
        assert len(found) == reported
        assert said != b"\0" or not found or found == ["answered by nothing (markersOnEmptyAnswer=report)"]


def test_a_call_brings_only_so_much() -> None:
    dialect = MarkersDialect(MarkersSettings(), max_emitted=5)
    dialect.initialize("shard-0", "TRIM_HORIZON", 0)
    dialect.next_event()
    for first in (1, 3):
        dialect.process_records(line(b"a", b"b", first=first))
        assert drained(dialect, b"123\0", b"45\0")[-1] == DONE
    dialect.process_records(line(b"a", b"b", first=5))
    assert drained(dialect, b"123\0", b"456\0")[-1] == ProtocolViolation("emitted more than 5 bytes for one call")


def test_an_empty_call_asks_nothing() -> None:
    for batching in Batching:
        dialect = started(MarkersSettings(batching=batching))
        dialect.process_records(line())
        assert drained(dialect) == [DONE]


def test_the_last_record_of_an_aggregate_is_checkpointed_with_its_sub_sequence_number() -> None:
    dialect = started()
    dialect.process_records((b"7 0 \n7 1 \n",))
    assert drained(dialect, b"\0", b"\0")[-2:] == [CheckpointRequested("7", 1), DONE]


def test_what_kcl_asks_is_answered_in_the_childs_place() -> None:
    dialect = started()
    assert dialect.shutdown_requested() == b""
    assert drained(dialect) == [CheckpointRequested(None), ActionDone(Action.SHUTDOWN_REQUESTED)]
    dialect.lease_lost()
    assert drained(dialect) == [ActionDone(Action.LEASE_LOST)]
    ending = started()
    ending.shard_ended()
    assert drained(ending) == [CheckpointRequested(None), ActionDone(Action.SHARD_ENDED)]


def test_a_payload_with_a_marker_is_rejected_and_passed() -> None:
    dialect = started()
    dialect.process_records(line(b"a", b"b\nc"))
    happened = drained(dialect, b"\0")
    assert happened[1:] == [Send(b"a\n"), CheckpointRequested("2", 0), DONE]
    assert isinstance(happened[0], Rejected)
    assert (happened[0].span, happened[0].payload) == (span(2), b"b\nc")
    assert "holds the marker EOM at byte 1" in happened[0].cause


def test_a_call_of_nothing_but_rejected_records_is_checkpointed() -> None:
    dialect = started()
    dialect.process_records(line(b"\n", causes={1: "left out"}))
    assert drained(dialect) == [Rejected(span(1), "left out", b"\n"), CheckpointRequested("1", 0), DONE]


def test_a_bad_message_report_is_apart_from_an_empty_answer() -> None:
    dialect = started()
    dialect.process_records(line(b"a", b"b"))
    happened = drained(dialect, b"\0", b'{"bad":"no JSON"}\n\0')
    assert happened[2:] == [Rejected(span(2), "no JSON", b"b"), CheckpointRequested("2", 0), DONE]


def test_a_report_on_a_batch_is_on_all_of_it_and_its_deltas_count() -> None:
    dialect = started(MarkersSettings(batching=Batching.SUPERVISOR))
    dialect.process_records(line(b"a", b"b"))
    happened = drained(dialect, b'{"uow":"1"}\n{"bad":"one of them"}\n\0')
    assert happened == [
        Send(b"a\nb\n\x17"),
        Emitted(b'{"action":"emit","deltas":[{"uow":"1"}]}'),
        Rejected(span(1, 2), "one of them", b"ab"),
        CheckpointRequested("2", 0),
        DONE,
    ]


@pytest.mark.parametrize("said", [[], [b'{"bad":"no JSON"}\n\0']])
def test_a_bad_message_may_fail_the_child(said: list[bytes]) -> None:
    dialect = started(MarkersSettings(on_bad_message=OnBadMessage.FAIL))
    dialect.process_records(line(b"a" if said else b"\n"))
    last = drained(dialect, *said)[-1]
    assert isinstance(last, ProtocolViolation)
    assert "cannot go on: record 1" in last.reason
    assert dialect.turn is Turn.BROKEN
    assert dialect.under_way is None  # no death: it is not left out by the policy for those
    assert dialect.next_event() is None


def test_what_a_worker_died_on_is_left_out_even_so() -> None:
    dialect = started(MarkersSettings(on_bad_message=OnBadMessage.FAIL))
    dialect.process_records(line(b"a", causes={1: "died"}))
    assert drained(dialect) == [Rejected(span(1), "died", b"a"), CheckpointRequested("1", 0), DONE]


def test_a_batch_under_way_is_all_that_was_sent_of_it() -> None:
    dialect = started(MarkersSettings(batching=Batching.WORKER, batch_size=3))
    dialect.process_records(line(b"a", b"\n", b"b", b"c", b"d"))
    drained(dialect, b"\x06", b"\x06")
    assert dialect.under_way == span(1, 4)


def test_violations_break_the_conversation_at_any_time() -> None:
    dialect = started()
    dialect.receive(b"ready\n")
    assert isinstance(dialect.next_event(), ProtocolViolation)
    with pytest.raises(ValueError, match="cannot be started"):
        dialect.process_records(line(b"a"))
    dialect = started()
    with pytest.raises(ValueError, match="nobody asked"):
        dialect.reply(CheckpointRequested(None))


@given(
    st.lists(st.tuples(st.binary(max_size=4), st.sampled_from(["none", "delta", "bad"])), max_size=12),
    st.sampled_from(Batching), st.sampled_from([CheckpointAt.CALL, CheckpointAt.ANSWER]), st.integers(1, 3), cuts(),
)  # fmt: skip
def test_every_record_is_answered_or_rejected_and_no_checkpoint_runs_ahead(
    records: list[tuple[bytes, str]], batching: Batching, policy: CheckpointAt, size: int, places: list[int]
) -> None:
    settings = MarkersSettings(batching=batching, batch_size=size, checkpoint=policy)
    kinds = {payload + b"%d" % number: kind for number, (payload, kind) in enumerate(records)}
    results = {"none": [], "delta": [b"{}"], "bad": [b'{"bad":"x"}']}
    worker = ModelWorker(settings.markers, batching, size, lambda message: results[kinds[message]])
    dialect = started(settings)
    dialect.process_records(line(*kinds))
    sent: list[bytes] = []
    refused: list[Rejected] = []
    reached = 0
    while (event := dialect.next_event()) is not None:
        match event:
            case Send(data):
                sent.append(data)
                for chunk in chunked(worker.talk(data), places):
                    dialect.receive(chunk)
            case Rejected() if "holds the marker" in event.cause:
                refused.append(event)
            case CheckpointRequested(sequence):
                processed = {list(kinds).index(message) + 1 for request in worker.requests for message in request}
                passed = processed | {rejected.span.first.sequence for rejected in refused}
                assert reached < int(sequence or 0) <= len(kinds)
                reached = int(sequence or 0)
                assert passed >= set(range(1, reached + 1))
                dialect.reply(event)
    assert dialect.turn is Turn.OURS
    assert reached == len(kinds)
    answered = [message for request in worker.requests for message in request]
    assert sorted(answered + [rejected.payload for rejected in refused]) == sorted(kinds)
