"""What was not processed is findable: each record in the offending text of one failed unit, with its cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Reject
from kainite.uow.unprocessed import MAX_CAUSES, MAX_UNITS, PAYLOADS, Unprocessed


def told(count: int, payload: str = "payload") -> Unprocessed:
    unprocessed = Unprocessed()
    for number in range(count):
        unprocessed.add(f"invalid:s:{number}", f"record {number}: not good", f"{payload} {number}")
    return unprocessed


def test_a_record_is_a_unit_of_its_own_with_its_payload() -> None:
    fragments = told(3).fragments("lines")
    assert [fragment.uow for fragment in fragments] == ["invalid:s:0", "invalid:s:1", "invalid:s:2"]
    assert fragments[1].rejects == (Reject("record 1: not good", "payload 1"),)
    assert all(fragment.ends == (UnitEnd(0),) for fragment in fragments)


def test_the_last_unit_lists_all_records_that_have_none_of_their_own() -> None:
    *own, last = told(300).fragments("lines")
    assert len(own) == MAX_UNITS - 1
    assert last.rejects[0].line.splitlines() == [
        f"record {number}: not good: payload {number}" for number in range(MAX_UNITS - 1, 300)
    ]
    causes = [reject.cause for reject in last.rejects]
    assert causes[0] == "record 19: not good"
    assert causes[MAX_CAUSES:] == ["and 261 more; the offending text lists them"]


def test_payloads_are_kept_as_long_as_there_is_room_and_places_and_causes_always() -> None:
    *own, last = told(1_000, "x" * 5_000).fragments("lines")
    listing = last.rejects[0].line.splitlines()
    assert [line.partition(":")[0] for line in listing] == [f"record {number}" for number in range(19, 1_000)]
    assert all(fragment.rejects[0].line == "x" * Reject.MAX_LINE for fragment in own)
    assert listing[0] == f"record 19: not good: {'x' * Reject.MAX_LINE}"
    assert listing[-1] == "record 999: not good"
    assert sum(map(len, listing)) < PAYLOADS + 1_000 * 30


def test_two_reports_on_one_record_are_one_unit() -> None:
    unprocessed = Unprocessed()
    unprocessed.add("invalid:s:1", "record 1: this", "payload")
    unprocessed.add("invalid:s:1", "record 1: that", "payload")
    [fragment] = unprocessed.fragments("lines")
    assert [reject.cause for reject in fragment.rejects] == ["record 1: this", "record 1: that"]
    assert fragment.rejects[0].line == "record 1: this: payload\nrecord 1: that: payload"


@given(st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_no_cause_is_lost_and_no_name_comes_twice(records: int, lines: int, same: bool) -> None:
    unprocessed = told(records)
    for number in range(lines):
        unprocessed.add_line(f"line {number}", f"text {number}")
    fragments = unprocessed.fragments("invalid:s:0" if same else "lines")
    assert len({fragment.uow for fragment in fragments}) == len(fragments) <= MAX_UNITS + 1
    text = "\n".join(f"{reject.cause}\n{reject.line}" for one in fragments for reject in one.rejects) + "\n"
    assert all(f"record {number}: not good" in text for number in range(records))
    assert all(f"line {number}" in text for number in range(lines))
