"""The dialect's order of moves (docs/kcl.md, *Multi-language protocol*); case numbers: see test_multilang_cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.child.events import Action, ActionDone, CheckpointRequested, Emitted, Event, ProtocolViolation, SkippedLine
from kainite.child.json_lines.dialect import ChildPhase, JsonLines
from kainite.child.json_lines.messages import KCL, V0, Spelling
from kainite.child.turns import Turn

BATCH = (b'{"action":"processRecords","records":[],"millisBehindLatest":0}\n',)


def status(action: str) -> bytes:
    return b'\n{"action": "status", "responseFor": "%s"}\n' % action.encode()


def checkpoint(sequence: str) -> bytes:
    return b'\n{"action": "checkpoint", "sequenceNumber": "%s", "subSequenceNumber": null}\n' % sequence.encode()


def events(dialect: JsonLines, data: bytes = b"") -> list[Event]:
    dialect.receive(data)
    return list(iter(dialect.next_event, None))


def running(spelling: Spelling = KCL) -> JsonLines:
    dialect = JsonLines(spelling)
    dialect.initialize("s", "LATEST", 0)
    assert events(dialect, status("initialize")) == [ActionDone(Action.INITIALIZE)]
    return dialect


def processing(spelling: Spelling = KCL) -> JsonLines:
    dialect = running(spelling)
    assert dialect.process_records(BATCH) is BATCH
    return dialect


STARTS: dict[Action, Callable[[JsonLines], bytes | None]] = {
    Action.INITIALIZE: lambda dialect: dialect.initialize("s", None, None),
    Action.PROCESS_RECORDS: lambda dialect: b"".join(dialect.process_records(BATCH)),
    Action.LEASE_LOST: JsonLines.lease_lost,
    Action.SHARD_ENDED: JsonLines.shard_ended,
    Action.SHUTDOWN_REQUESTED: JsonLines.shutdown_requested,
}


@pytest.mark.parametrize("action", Action)
def test_case_1_each_request_is_done_by_its_status(action: Action) -> None:
    dialect = JsonLines() if action is Action.INITIALIZE else running()
    request = STARTS[action](dialect)
    assert request is not None
    assert request.startswith(b'{"action":"%s"' % action.encode())
    assert request.endswith(b"\n")
    assert events(dialect, status(action)) == [ActionDone(action)]
    assert dialect.turn is Turn.OURS


def test_case_2_a_status_for_another_action_is_a_violation() -> None:
    dialect = JsonLines()
    dialect.initialize("s", None, None)
    (violation,) = events(dialect, status("processRecords"))
    assert violation == ProtocolViolation("answered 'processRecords', but was asked 'initialize'")
    assert events(dialect, status("initialize")) == []


def test_case_3_a_status_that_names_no_action_is_a_violation() -> None:
    (violation,) = events(processing(), b'{"action":"status"}\n')
    assert violation == ProtocolViolation("answered None, but was asked 'processRecords'")


@pytest.mark.parametrize("in_one_breath", [True, False])
def test_case_4_two_checkpoints_are_answered_in_order(in_one_breath: bool) -> None:
    dialect = processing()
    lines = [checkpoint("1"), checkpoint("2"), status("processRecords")]
    if in_one_breath:
        dialect.receive(b"".join(lines))
        lines = [b"", b"", b""]
    assert events(dialect, lines[0]) == [CheckpointRequested("1")]
    assert b'"sequenceNumber":"1"' in dialect.reply(CheckpointRequested("1"))
    assert events(dialect, lines[1]) == [CheckpointRequested("2")]
    assert b'"error":"ThrottlingException"' in dialect.reply(CheckpointRequested("2"), "ThrottlingException")
    assert events(dialect, lines[2]) == [ActionDone(Action.PROCESS_RECORDS)]


def test_case_8_junk_is_skipped_at_any_time() -> None:
    dialect = JsonLines()
    assert events(dialect, b"starting\n") == [SkippedLine("starting")]
    dialect.initialize("s", None, None)
    got = events(dialect, b"loading" + status("initialize") + b"idle\n")
    assert got == [SkippedLine("loading"), ActionDone(Action.INITIALIZE), SkippedLine("idle")]


def test_a_message_out_of_turn_is_held_until_the_childs_next_move() -> None:
    dialect = processing()
    assert events(dialect, status("processRecords") * 2) == [ActionDone(Action.PROCESS_RECORDS)]
    assert dialect.held > 0
    dialect.process_records(BATCH)
    assert events(dialect) == [ActionDone(Action.PROCESS_RECORDS)]
    assert dialect.held == 0


def test_a_last_line_without_its_end_counts() -> None:
    dialect = processing()
    assert events(dialect, status("processRecords").strip()) == []
    dialect.receive_eof()
    assert events(dialect) == [ActionDone(Action.PROCESS_RECORDS)]


def test_emit_lines_come_in_order_with_everything_else() -> None:
    broken = b'{"action":"emit","deltas":[\xff'
    sound = b'{"action":"emit","deltas":[]}'
    got = events(processing(), sound + b"\njunk\n" + broken + status("processRecords"))
    assert got == [Emitted(sound), SkippedLine("junk"), Emitted(broken), ActionDone(Action.PROCESS_RECORDS)]


def test_malformed_utf8_does_not_move_the_end_of_a_line() -> None:
    got = events(processing(), b"\xe2\x80" + status("processRecords"))
    assert got == [SkippedLine("\ufffd"), ActionDone(Action.PROCESS_RECORDS)]


def test_memory_is_bounded_for_lines_and_for_emits() -> None:
    dialect = JsonLines(max_line=100, max_emitted=60)
    dialect.initialize("s", None, None)
    assert events(dialect, b"x" * 1000) == [SkippedLine("x" * 100, cut=True)]
    emit = b'{"action":"emit","deltas":[]}\n'
    assert events(dialect, b"\n" + emit * 2) == [Emitted(emit.strip())] * 2
    assert events(dialect, emit) == [ProtocolViolation("emitted more than 60 bytes for one action")]


def test_a_message_longer_than_a_line_may_be_is_a_violation() -> None:
    dialect = JsonLines(max_line=100)
    dialect.initialize("s", None, None)
    got = events(dialect, b'{"action":"emit","deltas":[' + b" " * 100)
    assert got == [ProtocolViolation("wrote a message of more than 100 bytes")]


def test_actions_out_of_phase_are_the_daemons_own_defect() -> None:
    with pytest.raises(ValueError, match="processRecords cannot be started"):
        JsonLines().process_records(BATCH)
    ended = running()
    ended.shard_ended()
    events(ended, status("shardEnded"))
    assert ended.phase is ChildPhase.ENDED
    with pytest.raises(ValueError, match="leaseLost cannot be started"):
        ended.lease_lost()
    with pytest.raises(ValueError, match="START is not a move"):
        processing().lease_lost()
    with pytest.raises(ValueError, match="REPLY is not a move"):
        processing().reply(CheckpointRequested(None))


def test_a_whole_life_in_the_first_form() -> None:
    dialect = JsonLines(V0)
    assert dialect.initialize("s", "LATEST", 0) == b'{"action":"initialize","shardId":"s"}\n'
    assert events(dialect, status("initialize")) == [ActionDone(Action.INITIALIZE)]
    dialect.process_records(BATCH)
    assert events(dialect, b'{"action":"checkpoint","checkpoint":"7"}\n') == [CheckpointRequested("7")]
    assert dialect.reply(CheckpointRequested("7")) == b'{"action":"checkpoint","checkpoint":"7","error":null}\n'
    assert events(dialect, status("processRecords")) == [ActionDone(Action.PROCESS_RECORDS)]
    assert dialect.shutdown_requested() is None
    assert dialect.phase is ChildPhase.RUNNING
    assert dialect.lease_lost() == b'{"action":"shutdown","reason":"ZOMBIE"}\n'
    assert events(dialect, status("shutdown")) == [ActionDone(Action.LEASE_LOST)]


def test_the_end_of_a_shard_in_the_first_form_is_answered_as_a_shutdown() -> None:
    dialect = JsonLines(V0)
    dialect.initialize("s", None, None)
    events(dialect, status("initialize"))
    assert dialect.shard_ended() == b'{"action":"shutdown","reason":"TERMINATE"}\n'
    assert events(dialect, b'{"action":"checkpoint"}\n') == [CheckpointRequested(None)]
    dialect.reply(CheckpointRequested(None))
    assert events(dialect, status("shardEnded")) == [
        ProtocolViolation("answered 'shardEnded', but was asked 'shutdown'")
    ]


conversation = st.lists(
    st.sampled_from(
        [
            b"junk\n",
            b"\r\n",
            b"\xff\xfe\n",
            b"half",
            b'{"action":"emit","deltas":[]}\n',
            b'{"action":"emit","del\n',
            b'{"action":"status","responseFor":"processRecords"}\n',
            b'{"action":"status","responseFor":"initialize"}\r',
            b'{"action":"checkpoint","sequenceNumber":"7"}\n',
            b'{"action":"checkpoint","checkpoint":"7"}\n',
        ]
    ),
    max_size=12,
)


def play(chunks: list[bytes], spelling: Spelling) -> list[Event]:
    """Plays a daemon that answers each checkpoint and starts the next action at once."""
    dialect = processing(spelling)
    happened: list[Event] = []
    for chunk in [*chunks, None]:
        dialect.receive_eof() if chunk is None else dialect.receive(chunk)
        while (got := dialect.next_event()) is not None:
            happened.append(got)
            if isinstance(got, CheckpointRequested):
                dialect.reply(got)
            elif isinstance(got, ActionDone):
                dialect.process_records(BATCH)
    assert dialect.held == 0 or dialect.turn is Turn.BROKEN
    return happened


spellings = st.sampled_from([KCL, V0])


@given(conversation, spellings, st.data())
def test_events_do_not_depend_on_the_chunks(parts: list[bytes], spelling: Spelling, data: st.DataObject) -> None:
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    at_once = play([whole], spelling)
    assert play(chunks, spelling) == at_once
    assert play([whole[i : i + 1] for i in range(len(whole))], spelling) == at_once


@given(st.lists(st.binary(max_size=40), max_size=10), spellings)
def test_no_bytes_can_break_the_machine(chunks: list[bytes], spelling: Spelling) -> None:
    play(chunks, spelling)


@pytest.mark.parametrize(
    ("spelling", "line", "dialect"),
    [
        (KCL, b'{"action":"checkpoint","checkpoint":"495"}\n', "json-lines-v0"),
        (V0, b'{"action":"checkpoint","sequenceNumber":"495","subSequenceNumber":0}\n', "json-lines"),
    ],
)
def test_a_child_of_the_other_form_is_told_so(spelling: Spelling, line: bytes, dialect: str) -> None:
    child = JsonLines(spelling)
    child.initialize("s", "TRIM_HORIZON", 0)
    child.receive(line)
    happened = child.next_event()
    assert isinstance(happened, ProtocolViolation)
    assert happened.reason.endswith(f"set childProtocol={dialect}")
