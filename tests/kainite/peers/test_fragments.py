"""Fragments come back as they were sent, without their deltas' objects; nothing else is taken for fragments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.deltas import read_deltas
from kainite.peers.fragments import (
    MAX_PAYLOAD,
    SentFragment,
    check_size,
    decode_fragments,
    encode_fragments,
    payload_size,
)
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.packing import pack
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched

TEXT = st.text(max_size=20)
ROWS = st.dictionaries(TEXT, st.none() | TEXT | st.integers(0, 2**60), max_size=3)
DELTAS = st.builds(Delta, TEXT, st.sampled_from(Operation), ROWS, ROWS, ROWS, st.none() | st.integers(0, 2**63))
SIGNATURES = st.frozensets(st.integers(0, 2**64 - 1), max_size=4)
REJECTS = st.lists(st.builds(Reject, TEXT, TEXT), max_size=2).map(tuple)
NAMES = st.lists(TEXT, max_size=2).map(tuple)
ENDS = st.lists(
    st.builds(UnitEnd, st.integers(0, 2**40), st.none() | st.integers(0, 2**64 - 1), st.sampled_from(UnitKind)),
    max_size=2,
).map(tuple)
SCHEMES = st.builds(Scheme, st.dictionaries(TEXT, st.builds(TableScheme, TEXT, NAMES), max_size=2))
FRAGMENTS = st.builds(
    lambda scheme, touched, **more: Fragment(
        touched=msgspec.structs.replace(touched, scheme=scheme.id if scheme else None), scheme=scheme, **more
    ),
    scheme=st.none() | SCHEMES,
    touched=st.builds(Touched, SIGNATURES, SIGNATURES, NAMES, NAMES),
    uow=TEXT,
    deltas=st.lists(DELTAS, max_size=4).map(tuple),
    ends=ENDS,
    rejects=REJECTS,
    misfits=REJECTS,
    time=st.none() | st.integers(0, 2**63 - 1),
    arrived_ms=st.none() | st.integers(0, 2**50),
)


@given(st.lists(FRAGMENTS, max_size=4), st.booleans())
def test_they_come_back_as_they_were_sent(fragments: list[Fragment], known: bool) -> None:
    schemes = {one.scheme.id: one.scheme for one in fragments if one.scheme}
    metadata, payload, sent = encode_fragments(fragments, schemes.keys() if known else ())
    assert sent == (set() if known else schemes.keys())
    found, came = decode_fragments(metadata, payload, schemes if known else {})
    assert came.keys() == sent
    assert found == [replace(one, deltas=(), identities=one.identities) for one in fragments]
    assert [one.piece for one in found] == [one.piece for one in fragments]
    assert [one.count for one in found] == [len(one.deltas) for one in fragments]
    assert [one.signed for one in found] == [_as_bytes(one) for one in fragments]
    assert payload_size(found) == payload_size(fragments)


def _as_bytes(one: Fragment) -> bytes:
    return b"".join(each.to_bytes(8, "big") for each in (*sorted(one.touched.written), *sorted(one.touched.read)))


DELTA = Delta("t", Operation.INSERT, {}, {"id": 1}, {}, 3)


def test_fragments_of_one_append_share_a_blob() -> None:
    pieces = pack([[DELTA], [], [msgspec.structs.replace(DELTA, ordinal=4)]])
    fragments = [Fragment(f"T{place}", identities=(3,) if piece else (), piece=piece) for place, piece in
                 enumerate(pieces)]  # fmt: skip
    metadata, payload, _ = encode_fragments(fragments, ())
    found, _ = decode_fragments(metadata, payload, {})
    assert pieces[0] is not None
    assert payload == pieces[0].blob.frame
    first, none, last = (one.piece for one in found)
    assert first is not None
    assert none is None
    assert last is not None
    assert first.blob is last.blob


FIELDS = SentFragment.__struct_fields__


def sent() -> tuple[list[Any], bytes]:
    """Returns the metadata of an append with one fragment, as msgpack has it, and its payload."""
    fragment = Fragment("T", (DELTA,), Touched(frozenset({1})), ends=(UnitEnd(1, 2),))
    metadata, payload, _ = encode_fragments([fragment], ())
    return msgspec.msgpack.decode(metadata), payload


def metadata_of(document: object) -> bytes:
    return msgspec.msgpack.encode(document)


def test_what_was_sent_is_read() -> None:
    document, payload = sent()
    [fragment], _ = decode_fragments(metadata_of(document), payload, {})
    assert fragment.piece is not None
    assert read_deltas(fragment.piece.read()) == [DELTA]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uow", 3),
        ("blob", 0),
        ("blob", 2),
        ("blob", -1),
        ("blob", "x"),
        ("offset", 1),
        ("offset", -1),
        ("length", 0),
        ("length", 2**40),
        ("identities", []),
        ("identities", [-1]),
        ("identities", [b"AAAA"]),
        ("identities", [True]),
        ("signed", bytes(7)),
        ("signed", 3),
        ("written", "x"),
        ("written", 2),
        ("written", 1.5),
        ("written", -1),
        ("ends", [[1, 2, "other"]]),
        ("ends", [[1]]),
        ("ends", [[-1, 2, "normal"]]),
        ("ends", 7),
        ("rejects", [["a"]]),
        ("misfits", [{"cause": "a", "line": 1}]),
        ("time", "x"),
        ("time", -1),
        ("tables", [None]),
        ("scheme", "unknown"),
    ],
)
def test_what_is_no_fragment_is_refused(field: str, value: object) -> None:
    document, payload = sent()
    document[0][0][FIELDS.index(field)] = value
    with pytest.raises(LogProtocolError):
        decode_fragments(metadata_of(document), payload, {})


@pytest.mark.parametrize(("place", "value"), [(0, 3), (0, [[]]), (1, []), (1, [[1, 2]]), (1, None), (2, {"a": 3})])
def test_metadata_that_says_something_else_is_refused(place: int, value: object) -> None:
    document, payload = sent()
    document[place] = value
    with pytest.raises(LogProtocolError):
        decode_fragments(metadata_of(document), payload, {})


def test_a_table_that_is_nested_too_deeply_is_refused() -> None:
    deep = b"\x91" * 100_000 + b"\x90"
    metadata = b"\x94\x90\x90\x81\xa1s\x81\xa1t\x81\xa1x" + deep + b"\xc0"
    with pytest.raises(LogProtocolError, match="recursion"):
        decode_fragments(metadata, b"", {})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_blob_of_another_length_checksum_or_size_is_refused(place: int) -> None:
    document, payload = sent()
    document[1][0][place] += 1
    with pytest.raises(LogProtocolError, match="blob"):
        decode_fragments(metadata_of(document), payload, {})


@given(st.binary(max_size=200))
def test_bytes_of_another_kind_are_refused(garbage: bytes) -> None:
    document, payload = sent()
    for metadata, body in (
        (garbage, payload),
        (metadata_of([]), payload),
        (metadata_of({}), payload),
        (metadata_of(document), garbage),
        (metadata_of(document) + garbage + b"x", payload),
        (metadata_of(document), payload + garbage + b"x"),
    ):
        with pytest.raises(LogProtocolError):
            decode_fragments(metadata, body, {})


def test_more_than_any_batch_takes_is_refused_before_it_is_sent() -> None:
    check_size("s", MAX_PAYLOAD)
    with pytest.raises(LogRequestError, match=r"shard s: one call emitted \d+ bytes of deltas.* maxRecords"):
        check_size("s", MAX_PAYLOAD + 1)
