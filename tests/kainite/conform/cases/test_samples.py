"""The records that are sent to the child."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.conform.cases.samples import FIRST, MOST_RECORDS, Samples, generic, padded, read_samples

THREE = Samples((b"a", b"b", b"c"))


@pytest.mark.parametrize(
    ("count", "begin", "payloads"),
    [(0, 0, b""), (2, 0, b"ab"), (5, 0, b"abcab"), (2, 2, b"ca"), (1, 7, b"b")],
)
def test_payloads_begin_again_where_more_are_needed(count: int, begin: int, payloads: bytes) -> None:
    assert b"".join(THREE.taken(count, begin)) == payloads


def test_records_are_numbered_on_from_those_before() -> None:
    raws = THREE.records(3, begin=4)
    assert [int(raw.sequence) - FIRST for raw in raws] == [4, 5, 6]
    assert [b64decode(raw.data or "") for raw in raws] == [b"b", b"c", b"a"]


def test_an_aggregate_has_one_sequence_number() -> None:
    raws = THREE.aggregated(3, 2)
    assert {raw.sequence for raw in raws} == {str(FIRST + 2)}
    assert [raw.sub for raw in raws] == [0, 1, 2]


@pytest.mark.parametrize(("size", "count"), [(1, 1), (4, 4), (MOST_RECORDS + 5, MOST_RECORDS)])
def test_a_large_call_has_the_size_but_no_more_records_than_a_reply(size: int, count: int) -> None:
    assert len(THREE.large(size)) == count


def test_the_generic_records_are_one_whole_unit() -> None:
    *deltas, end = map(json.loads, generic(5).payloads)
    assert {delta["uow"] for delta in deltas} == {end["uow"]}
    assert (end["end"], end["count"]) == (True, len(deltas))


def test_padded_records_have_the_size_together() -> None:
    assert sum(map(len, padded(10_000, 10).payloads)) == 10_000


def test_samples_of_the_author_are_the_lines_that_are_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b'{"a":1}\n\n{"b":2}\r\n')
    assert read_samples(path) == Samples((b'{"a":1}', b'{"b":2}'), own=True)
    path.write_bytes(b"\n\n")
    with pytest.raises(SettingsError, match="is empty; write one payload a line"):
        read_samples(path)
    with pytest.raises(SettingsError, match="--records: cannot read"):
        read_samples(tmp_path / "none")


@pytest.mark.parametrize(("count", "size"), [(1, 10), (7, 1000), (3, 10_000_000)])
def test_a_large_call_is_no_larger_than_kinesis_gives(count: int, size: int) -> None:
    samples = Samples(tuple(b"x" * 100 for _ in range(count)), own=True)

    assert len(samples.large(size)) == max(1, min(size // 100, 10_000))
