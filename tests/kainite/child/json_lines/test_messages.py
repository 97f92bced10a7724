"""The protocol's bytes (docs/kcl.md, *Multi-language protocol*)."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kainite.child.events import Action, CheckpointRequested, Emitted, SkippedLine
from kainite.child.json_lines.messages import V0, Message, Status, bare_line, initialize_line, parse, reply_line

GOLDEN = [
    (
        initialize_line("shardId-000000000000", "TRIM_HORIZON", 0),
        b'{"action":"initialize","shardId":"shardId-000000000000","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}\n',
    ),
    (
        initialize_line("s", None, None),
        b'{"action":"initialize","shardId":"s","sequenceNumber":null,"subSequenceNumber":null}\n',
    ),
    (bare_line(Action.LEASE_LOST), b'{"action":"leaseLost"}\n'),
    (bare_line(Action.SHARD_ENDED), b'{"action":"shardEnded"}\n'),
    (bare_line(Action.SHUTDOWN_REQUESTED), b'{"action":"shutdownRequested"}\n'),
    (
        reply_line(CheckpointRequested("495", 3), None),
        b'{"action":"checkpoint","sequenceNumber":"495","subSequenceNumber":3,"error":null}\n',
    ),
    (
        reply_line(CheckpointRequested(None, None), "ThrottlingException"),
        b'{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":"ThrottlingException"}\n',
    ),
    (
        reply_line(CheckpointRequested("\u2028é", None), "IllegalArgumentException"),
        b'{"action":"checkpoint","sequenceNumber":"\\u2028\\u00e9","subSequenceNumber":null,'
        b'"error":"IllegalArgumentException"}\n',
    ),
]


FIRST_FORM = [
    (initialize_line("shardId-0", "TRIM_HORIZON", 0, V0), b'{"action":"initialize","shardId":"shardId-0"}\n'),
    (bare_line(Action.LEASE_LOST, V0), b'{"action":"shutdown","reason":"ZOMBIE"}\n'),
    (bare_line(Action.SHARD_ENDED, V0), b'{"action":"shutdown","reason":"TERMINATE"}\n'),
    (reply_line(CheckpointRequested("495"), None, V0), b'{"action":"checkpoint","checkpoint":"495","error":null}\n'),
    (
        reply_line(CheckpointRequested(None), "ThrottlingException", V0),
        b'{"action":"checkpoint","checkpoint":null,"error":"ThrottlingException"}\n',
    ),
]


@pytest.mark.parametrize(("written", "golden"), FIRST_FORM)
def test_what_is_written_in_the_first_form(written: bytes, golden: bytes) -> None:
    assert written == golden


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"action":"checkpoint","checkpoint":"12"}', CheckpointRequested("12")),
        ('{"checkpoint":12,"action":"checkpoint","error":null}', CheckpointRequested("12")),
        ('{"action":"checkpoint","checkpoint":null}', CheckpointRequested(None)),
        ('{"action":"status","responseFor":"shutdown"}', Status("shutdown")),
    ],
)
def test_what_is_read_in_the_first_form(line: str, message: Message) -> None:
    assert parse(line.encode(), V0) == message


def test_neither_form_takes_the_others_checkpoints() -> None:
    today, first = '{"action":"checkpoint","sequenceNumber":"1"}', '{"action":"checkpoint","checkpoint":"1"}'
    assert parse(today.encode(), V0) == SkippedLine(today)
    assert parse(first.encode()) == SkippedLine(first)


@pytest.mark.parametrize(("written", "golden"), GOLDEN)
def test_what_the_daemon_writes_is_kcls_byte_for_byte(written: bytes, golden: bytes) -> None:
    assert written == golden


UNDERSTOOD: list[tuple[str, Message]] = [
    ('{"action":"status","responseFor":"initialize"}', Status("initialize")),
    ('  {"responseFor" : "initialize", "action":"status"}\t ', Status("initialize")),
    ('{"action":"status","responseFor":"initialize"} and more {"action"', Status("initialize")),
    ('{"action":"status"}', Status(None)),
    ('{"action":"status","responseFor":null}', Status(None)),
    ('{"action":"status","responseFor":"a","responseFor":"b"}', Status("b")),
    ('{"action":"checkpoint"}', CheckpointRequested(None, None)),
    ('{"action":"checkpoint","sequenceNumber":"12","subSequenceNumber":null}', CheckpointRequested("12", None)),
    ('{"action":"checkpoint","sequenceNumber":12}', CheckpointRequested("12", None)),
    ('{"action":"checkpoint","sequenceNumber":true}', CheckpointRequested("true", None)),
    ('{"action":"checkpoint","subSequenceNumber":"5"}', CheckpointRequested(None, 5)),
    ('{"action":"checkpoint","subSequenceNumber":5.9}', CheckpointRequested(None, 5)),
    ('{"action":"checkpoint","subSequenceNumber":-5.9}', CheckpointRequested(None, -5)),
    ('{"action":"checkpoint","subSequenceNumber":""}', CheckpointRequested(None, None)),
    ('{"action":"checkpoint","error":"x"}', CheckpointRequested(None, None)),
]


@pytest.mark.parametrize(("line", "message"), UNDERSTOOD)
def test_a_child_is_read_as_leniently_as_kcl_reads_it(line: str, message: Message) -> None:
    assert parse(line.encode()) == message


JUNK = [
    "Downloading model… 100 %",
    "null",
    "[]",
    '"status"',
    "{}",
    '{"action":"Status","responseFor":"initialize"}',
    '{"action":5}',
    '{"action":{}}',
    '{"action":"status","responseFor":"initialize","extra":1}',
    '{"action":"status","responseFor":["initialize"]}',
    "{'action':'status','responseFor':'initialize'}",
    '{"action":"checkpoint","subSequenceNumber":NaN}',
    '{"action":"checkpoint","subSequenceNumber":true}',
    '{"action":"checkpoint","subSequenceNumber":"5.9"}',
    '{"action":"checkpoint","subSequenceNumber":9223372036854775808}',
    '{"action":"checkpoint","subSequenceNumber":1e400000000}',
    '{"action":"checkpoint","sequenceNumber":' + "9" * 5000 + "}",
    '{"action":"checkpoint","sequenceNumber":{}}',
    '{"action":"checkpoint","checkpoint":"12"}',
    '{"action":"initialize","shardId":"s"}',
    '\ufeff{"action":"status","responseFor":"initialize"}',
    '{"action":"status","responseFor":' + "[" * 100_000,
]


@pytest.mark.parametrize("line", JUNK, ids=range(len(JUNK)))
def test_anything_else_is_junk(line: str) -> None:
    assert parse(line.encode()) == SkippedLine(line)


@pytest.mark.parametrize("line", [b"", b" ", b"\t"])
def test_blank_lines_are_nothing(line: bytes) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"action":"emit","deltas":[]}',
        b' { "action" : "emit" }',
        b'{"deltas":[{"uow":"T-1"}], "action":"emit"}',
        b'{"action":"emit","deltas":[{"uow":"T-1"',
        b'{"deltas":[{"uow":"T\xff"}],"action":"emit"}',
        b'{"action":"emit","deltas":[{"uow":"T\xff"}]}',
        b'"deltas":[],"action":"emit"}',
    ],
)
def test_emit_lines_and_what_seems_to_be_one_are_handed_on_as_they_came(line: bytes) -> None:
    assert parse(line) == Emitted(line)


def test_the_word_emit_elsewhere_makes_no_emit_line() -> None:
    assert parse(b'{"action":"checkpoint","sequenceNumber":"emit"}') == CheckpointRequested("emit", None)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
@example(b"\xff\xfe")
def test_no_line_can_break_the_reader(line: bytes) -> None:
    parse(line)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
fields = st.sampled_from(["action", "responseFor", "sequenceNumber", "subSequenceNumber", "error", "x"])
values = st.one_of(json_values, st.sampled_from(["status", "checkpoint", "emit", "initialize"]))


@given(st.dictionaries(fields, values))
def test_no_json_object_can_break_the_reader(message: dict[str, object]) -> None:
    read = parse(json.dumps(message).encode())
    assert isinstance(read, Emitted) == (message.get("action") == "emit") or '"emit"' in json.dumps(message)


@pytest.mark.parametrize("number", [b"1e99999999999999999999", b"1E-99999999999999999999"])
def test_an_exponent_that_no_decimal_has_makes_the_line_junk(number: bytes) -> None:
    assert isinstance(parse(b'{"action":"status","responseFor":%s}' % number), SkippedLine)
    assert isinstance(parse(b'{"action":"checkpoint","subSequenceNumber":%s}' % number), SkippedLine)
