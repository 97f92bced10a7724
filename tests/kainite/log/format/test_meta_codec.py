"""Metas read back; those of earlier releases, without later fields, are read."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given

from kainite.log.format.entry import Entry, EntryKind, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.format.meta_codec import decode_meta, encode_meta
from support.log_builders import ENTRIES


@given(ENTRIES)
def test_a_meta_reads_back(entry: Entry) -> None:
    assert decode_meta(entry.kind, orjson.loads(encode_meta(entry.meta))) == entry.meta


def test_a_fragment_written_before_deltas_had_digests_is_read() -> None:
    fields = {"uow": "T", "shard": "s", "count": 2, "ordinals": [0], "end_count": 2, "number": 5,
              "unit_kind": "normal", "causes": [], "offending": None}  # fmt: skip
    assert decode_meta(EntryKind.FRAGMENT, fields) == FragmentMeta("T", "s", 2, (0,), 2, 5)


def test_a_unit_and_an_outcome_written_before_they_had_times_are_read() -> None:
    unit = orjson.loads(encode_meta(UnitMeta("T", 1)))
    assert decode_meta(EntryKind.UNIT, {k: v for k, v in unit.items() if k not in ("source_time", "arrival_ms")}) == (
        UnitMeta("T", 1)
    )
    outcome = {"tid": 1, "status": "committed", "instance": 0, "cause": None}
    status = decode_meta(EntryKind.STATUS, {"outcomes": [outcome], "through": None, "requests": []})
    assert status == StatusMeta((Outcome(1, UnitStatus.COMMITTED, 0),))


@pytest.mark.parametrize("without", [["x"], [None], 3, [1.5]])
def test_places_that_are_no_numbers_are_refused(without: object) -> None:
    fields = orjson.loads(encode_meta(UnitMeta("T", 1)))
    with pytest.raises(TypeError):
        decode_meta(EntryKind.UNIT, {**fields, "without": without})
