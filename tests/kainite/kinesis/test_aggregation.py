from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.base.record import RawRecord, position_of
from kainite.kinesis.aggregation import PORTION_CHARACTERS, expand, marked, portions
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange
from support import kpl
from support.kpl import User

GOLDEN = json.loads((Path(__file__).parent / "golden" / "aggregates.json").read_text())

KEYS = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=5)


def record(payload: bytes, sequence: int = 7) -> RawRecord:
    return RawRecord(str(sequence), "outer", base64.b64encode(payload).decode(), 1.5)


@st.composite
def aggregates(draw: st.DrawFn) -> tuple[list[User], list[str], list[str]]:
    """Draws user records and the tables that they point into."""
    keys, explicit = draw(KEYS), draw(st.lists(st.integers(0, MAX_HASH_KEY).map(str), max_size=3))
    index = st.none() | st.integers(0, len(explicit) - 1) if explicit else st.none()
    users = st.lists(st.builds(User, st.binary(max_size=300), st.integers(0, len(keys) - 1), index), max_size=20)
    return draw(users), keys, explicit


def hash_key(user: User, keys: list[str], explicit: list[str]) -> int:
    if user.explicit is not None:
        return int(explicit[user.explicit])
    return int(hashlib.md5(keys[user.key].encode()).hexdigest(), 16)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_records_come_out_as_the_java_library_takes_them_out(case: dict[str, Any]) -> None:
    source = record(base64.b64decode(case["data"]))
    found = expand([source], HashRange(int(case["start"]), int(case["end"])))
    if case["records"] is None:  # where Java throws, the record passes as it is
        assert list(found) == [source]
    else:
        as_java = [[user.sub or 0, user.key, user.data] for user in found]
        assert as_java == case["records"]


@given(aggregates())
def test_what_was_put_together_comes_apart_again(made: tuple[list[User], list[str], list[str]]) -> None:
    users, keys, explicit = made
    found = expand([record(kpl.aggregate(users, keys, explicit))])
    assert [(base64.b64decode(r.data or ""), r.key) for r in found] == [(u.data, keys[u.key]) for u in users]
    assert [position_of(r) for r in found] == [Position(7, sub) for sub in range(len(users))]
    assert all(r.arrived == 1.5 for r in found)


@given(aggregates(), st.integers(0, MAX_HASH_KEY), st.integers(0, MAX_HASH_KEY))
def test_an_aggregate_that_reaches_beyond_the_shard_is_dropped_whole(
    made: tuple[list[User], list[str], list[str]], one: int, other: int
) -> None:
    users, keys, explicit = made
    shard = HashRange(min(one, other), max(one, other))
    inside = all(shard.start <= hash_key(user, keys, explicit) <= shard.end for user in users)
    found = expand([record(b"before", 6), record(kpl.aggregate(users, keys, explicit)), record(b"after", 8)], shard)
    assert len(found) == (len(users) if inside else 0) + 2
    assert (found[0].sequence, found[-1].sequence) == ("6", "8")


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_behind_the_magic_pass_as_they_are(junk: bytes, sealed: bool) -> None:
    source = record(kpl.sealed(junk) if sealed else kpl.MAGIC + junk)
    found = expand([source])
    # A digest that fits may seal a message that has tables only, or fields that nobody knows.
    assert list(found) == [source] or (sealed and all(user.sequence == "7" for user in found))


@given(aggregates(), st.integers(0), st.integers(1, 255), st.booleans())
def test_a_damaged_aggregate_raises_nothing(
    made: tuple[list[User], list[str], list[str]], place: int, flip: int, resealed: bool
) -> None:
    body = bytearray(kpl.message(*made))
    body[place % len(body)] ^= flip
    payload = kpl.sealed(bytes(body)) if resealed else kpl.aggregate(*made)[: -kpl.DIGEST_BYTES] + bytes(16)
    source = record(payload)
    found = expand([source])
    assert resealed or list(found) == [source]


def test_a_partition_key_longer_than_kinesis_allows_is_not_multiplied() -> None:
    longest, longer = record(kpl.aggregate([User(b"x")], ["k" * 256])), record(kpl.aggregate([User(b"x")], ["k" * 257]))
    assert [user.key for user in expand([longest])] == ["k" * 256]
    assert list(expand([longer])) == [longer]


@given(st.binary(max_size=12) | st.builds(lambda tail: kpl.MAGIC + tail, st.binary(max_size=8)))
def test_the_mark_is_told_from_the_base64(payload: bytes) -> None:
    assert bool(marked(record(payload))) == payload.startswith(kpl.MAGIC)


def test_no_neighbour_of_the_magic_is_taken_for_it() -> None:
    found = [last for last in range(256) if marked(record(kpl.MAGIC[:3] + bytes([last]) + b"x"))]
    assert found == [kpl.MAGIC[3]]


def test_plain_records_are_returned_themselves() -> None:
    records = [record(b"a"), RawRecord("7", "outer")]
    assert expand(records) is records


def test_portions_hold_all_records_in_order_and_little_of_aggregates() -> None:
    size = PORTION_CHARACTERS // 5
    records = [record(kpl.MAGIC + bytes(size) if n % 2 else b"plain", n) for n in range(20)]
    found = portions(records)
    assert [r for portion in found for r in portion] == records
    assert len(found) == 4
    for portion in found:
        assert sum(len(marked(r)) for r in portion) <= PORTION_CHARACTERS
    assert portions(records[::2]) == (records[::2],)
    assert portions([]) == ([],)


def test_an_aggregate_larger_than_a_portion_is_one_by_itself() -> None:
    large = [record(kpl.MAGIC + bytes(PORTION_CHARACTERS), n) for n in range(2)]
    assert portions(large) == ([large[0]], [large[1]])


def test_protobuf_is_not_loaded_before_it_is_needed() -> None:
    program = (
        "import sys\nfrom kainite.base.record import RawRecord\nfrom kainite.kinesis.aggregation import expand\n"
        "import kainite.kinesis.read.polling\nexpand([RawRecord('1', 'k', 'YWJj')])\n"
        "sys.exit('google.protobuf' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
