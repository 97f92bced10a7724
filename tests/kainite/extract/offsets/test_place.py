"""Places: what begins where, and which messages are offsets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import ChildProtocolError, SourceError
from kainite.extract.offsets.place import (
    GivenOffset,
    Place,
    SourceLag,
    before_asking,
    first_place,
    moment_of,
    moment_text,
    offset_in,
)
from kainite.settings import ExtractOffsets


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_times_read_back_and_compare_as_their_texts_do(one: datetime, other: datetime) -> None:
    first, second = (moment.astimezone(UTC) for moment in (one, other))
    assert moment_of(moment_text(first)) == first
    assert (moment_text(first) < moment_text(second)) == (first < second)


@pytest.mark.parametrize(
    ("text", "hours"), [("2026-11-01T12:00:00Z", 12), ("2026-11-01T12:00:00+02:00", 10), ("2026-11-01", 0)]
)
def test_a_beginning_is_a_time_in_utc(text: str, hours: int) -> None:
    place = first_place(ExtractOffsets.TIME, text)
    assert moment_of(place.start) == datetime(2026, 11, 1, tzinfo=UTC) + timedelta(hours=hours)


@pytest.mark.parametrize("begin", ["yesterday", "", 5, None])
def test_what_is_no_time_is_no_beginning(begin: Any) -> None:
    with pytest.raises(SourceError, match=r"begins at a time|is no time"):
        first_place(ExtractOffsets.TIME, begin)


def test_any_json_is_a_beginning_for_a_childs_offsets() -> None:
    assert first_place(ExtractOffsets.KAINITE, {"page": [1, None]}) == Place({"page": [1, None]})


@pytest.mark.parametrize(
    ("message", "given"),
    [
        (b'{"offset":5}', GivenOffset(5)),
        (b'{"offset":null}', GivenOffset(None)),
        (b' {"offset": {"a":[1]}} ', GivenOffset({"a": [1]})),
        (b'{"offset":5,"ahead":true}', GivenOffset(5, ahead=True)),
        (b'{"offset":5,"ahead":false}', GivenOffset(5)),
        (b'{"offset":5,"ahead":1}', None),
        (b'{"ahead":true}', None),
        (b'{"offset":5,"uow":"T"}', None),
        (b'{"offset":5', None),
        (b'"offset"', None),
        (b'["offset"]', None),
        (b"\xff\"offset\"", None),
    ],
)  # fmt: skip
def test_an_offset_is_an_object_with_its_keys_alone(message: bytes, given: GivenOffset | None) -> None:
    assert offset_in(message) == given


@pytest.mark.parametrize(
    "number", [b"123456789012345678901234567890", b"1700000000.123456789", b"-9223372036854775809"]
)
def test_an_offset_that_would_come_back_as_another_is_refused(number: bytes) -> None:
    with pytest.raises(ChildProtocolError, match="cannot hold: it must be a text"):
        offset_in(b'{"offset":{"scn":[' + number + b"]}}")
    assert offset_in(b'{"offset":"' + number + b'"}') == GivenOffset(number.decode())
    assert offset_in(b'{"offset":18446744073709551615}') == GivenOffset(2**64 - 1)


def test_a_range_that_was_chosen_by_a_clock_that_ran_fast_is_asked_for_when_its_end_is_past() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    chosen = Place(moment_text(now - timedelta(hours=1)), moment_text(now + timedelta(hours=1)))
    assert before_asking(ExtractOffsets.TIME, chosen, now) is None
    assert before_asking(ExtractOffsets.TIME, chosen, now + timedelta(hours=1)) == chosen


@pytest.mark.parametrize(
    ("lag", "read"),
    [
        ('{"time":5,"heldBytes":6,"leftBytes":7,"more":8}', SourceLag(5, 6, 7)),
        ("{}", SourceLag()),
        ('{"time":"x","heldBytes":-1,"leftBytes":true}', SourceLag()),
        ("7", None),
    ],
)
def test_an_offset_may_say_how_far_the_source_is_ahead(lag: str, read: SourceLag | None) -> None:
    found = offset_in(f'{{"offset":1,"ahead":true,"lag":{lag}}}'.encode())

    assert found == GivenOffset(1, True, read)
