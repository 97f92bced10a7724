from __future__ import annotations

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.child.events import Span
from kainite.child.markers.records import LeftOut, RecordMessage, leave_out, read_records, render_records


def raw(sequence: int, payload: bytes, sub: int = 0) -> RawRecord:
    return RawRecord(str(sequence), "k", b64encode(payload).decode(), sub=sub)


@given(st.lists(st.tuples(st.integers(0, 2**200), st.integers(0, 99), st.binary(max_size=20))))
def test_records_read_back_as_they_were(records: list[tuple[int, int, bytes]]) -> None:
    line = render_records([raw(sequence, payload, sub) for sequence, sub, payload in records], None)
    assert read_records(line) == [RecordMessage(Position(sequence, sub), payload) for sequence, sub, payload in records]


def test_a_cause_is_one_line_and_reaches_from_the_first_to_the_last_record_left_out() -> None:
    line = render_records([raw(number, b"x") for number in range(1, 6)], None)
    marked = leave_out(line, [LeftOut(Span(Position(2), Position(3)), "it died\n twice"), LeftOut(
        Span(Position(3), Position(4)), "again")])  # fmt: skip
    assert [record.cause for record in read_records(marked)] == [None, "it died twice", "it died twice", "again", None]


def test_a_line_is_short_and_a_record_without_data_is_empty() -> None:
    assert render_records([raw(1, b"1"), raw(2, b"2")], None) == (b"1 0 MQ==\n2 0 Mg==\n",)
    bare = RawRecord("9", "k")
    assert read_records(render_records([bare], None)) == [RecordMessage(Position(9), b"")]


def test_nothing_left_out_changes_nothing() -> None:
    line = render_records([raw(1, b"x")], None)
    assert leave_out(line, []) is line


def test_an_empty_batch_has_no_bytes() -> None:
    assert b"".join(render_records([], 0)) == b""
    assert read_records(()) == []
