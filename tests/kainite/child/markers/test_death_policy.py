"""A batch as the ``markers`` dialect keeps it, and what is left out of it after deaths."""

from __future__ import annotations

import base64

import pytest

from kainite.base.errors import ChildExitedError
from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.child.events import Span
from kainite.child.markers.death_policy import DeathPolicy
from kainite.child.markers.records import RecordMessage, read_records, render_records
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings, OnDeath

ERROR = ChildExitedError("child 7 of shard-0\nended with signal SIGKILL")


def record(sequence: int, sub: int, data: bytes) -> RawRecord:
    return RawRecord(str(sequence), "k", base64.b64encode(data).decode(), sub=sub)


def settings(on_death: OnDeath) -> ChildSettings:
    markers = MarkersSettings(on_death=on_death)
    return ChildSettings(("cat",), poison_tries=4, protocol=ChildProtocol.MARKERS, markers=markers)


LINE = render_records([record(number, 0, b"%d" % number) for number in range(1, 6)], None)


@pytest.mark.parametrize(
    ("on_death", "limit"), [(OnDeath.RETRY, None), (OnDeath.TRIES, 4), (OnDeath.ONCE, 2), (OnDeath.SKIP, 1)]
)
def test_a_request_is_left_out_after_so_many_tries(on_death: OnDeath, limit: int | None) -> None:
    deaths = DeathPolicy()
    left_out = [
        deaths.died(Span(Position(2), Position(2)), tries, ERROR, settings(on_death), answered=True)
        for tries in range(1, 9)
    ]
    assert left_out.count(True) == (0 if limit is None else 9 - limit)
    assert (left_out.index(True) + 1 if True in left_out else None) == limit


def test_a_program_that_never_answers_does_not_use_up_the_stream() -> None:
    deaths, skip = DeathPolicy(), settings(OnDeath.SKIP)
    for number in range(skip.poison_tries):
        assert deaths.died(Span(Position(number), Position(number)), 1, ERROR, skip, answered=False)
    assert not deaths.died(Span(Position(90), Position(90)), 1, ERROR, skip, answered=False)
    assert deaths.died(Span(Position(91), Position(91)), 1, ERROR, skip, answered=True)
    assert deaths.died(Span(Position(92), Position(92)), 1, ERROR, skip, answered=False)


def test_what_is_left_out_keeps_its_payload_and_gets_a_cause_of_one_line() -> None:
    deaths = DeathPolicy()
    assert deaths.mark(LINE) is LINE
    deaths.died(Span(Position(2), Position(3)), 1, ERROR, settings(OnDeath.SKIP), answered=True)
    deaths.died(Span(Position(5), Position(5)), 1, ERROR, settings(OnDeath.SKIP), answered=True)
    cause = "left out after 1 tries: child 7 of shard-0 ended with signal SIGKILL"
    assert read_records(deaths.mark(LINE)) == [
        RecordMessage(Position(1), b"1"),
        RecordMessage(Position(2), b"2", cause),
        RecordMessage(Position(3), b"3", cause),
        RecordMessage(Position(4), b"4"),
        RecordMessage(Position(5), b"5", cause),
    ]


def test_what_a_checkpoint_has_passed_is_forgotten() -> None:
    deaths = DeathPolicy()
    deaths.died(Span(Position(2), Position(3)), 1, ERROR, settings(OnDeath.SKIP), answered=True)
    deaths.begin(settings(OnDeath.SKIP), None)
    deaths.begin(settings(OnDeath.SKIP), Position(2))
    assert deaths.mark(LINE) != LINE
    deaths.begin(settings(OnDeath.SKIP), Position(3))
    assert deaths.mark(LINE) == LINE


def test_a_child_of_another_protocol_gets_its_line_as_it_is() -> None:
    deaths = DeathPolicy()
    deaths.died(Span(Position(2), Position(3)), 1, ERROR, settings(OnDeath.SKIP), answered=True)
    deaths.begin(ChildSettings(("cat",)), Position(1))
    assert deaths.mark((b'{"action": "processRecords"}\n',)) == (b'{"action": "processRecords"}\n',)
