"""Fragments come back as they were sent, without their deltas' objects; nothing else is taken for fragments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.compression import compressed
from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.service.sharing.fragments import (
    MAX_PAYLOAD,
    check_size,
    decode_fragments,
    encode_fragments,
    payload_size,
)
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.scheme import Scheme, TableScheme

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
    Fragment, TEXT, st.lists(DELTAS, max_size=4).map(tuple), SIGNATURES, SIGNATURES, ENDS, REJECTS, st.just(()),
    REJECTS, NAMES, NAMES, st.none() | SCHEMES, st.none() | st.integers(0, 2**63 - 1),
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=4), st.booleans())
def test_they_come_back_as_they_were_sent(fragments: list[Fragment], known: bool) -> None:
    schemes = {one.scheme.id: one.scheme for one in fragments if one.scheme}
    metadata, payload, sent = encode_fragments(fragments, schemes.keys() if known else ())
    assert sent == (set() if known else schemes.keys())
    found, came = decode_fragments(metadata, payload, schemes if known else {})
    assert came.keys() == sent
    assert found == [replace(one, deltas=(), encoded=one.encoded, identities=one.identities) for one in fragments]
    assert [one.encoded for one in found] == [one.encoded for one in fragments]
    assert [one.count for one in found] == [len(one.deltas) for one in fragments]
    assert payload_size(found) == payload_size(fragments)


def sent() -> tuple[dict[str, Any], bytes]:
    delta = Delta("t", Operation.INSERT, {}, {"id": 1}, {}, 3)
    metadata, payload, _ = encode_fragments([Fragment("T", (delta,), frozenset({1}), ends=(UnitEnd(1, 2),))], ())
    return orjson.loads(metadata), payload


@pytest.mark.parametrize(
    "change",
    [
        {"uow": 3},
        {"sizes": [1]},
        {"sizes": [-1]},
        {"sizes": [2**40]},
        {"sizes": "x"},
        {"identities": []},
        {"identities": [-1]},
        {"identities": ["AAAA"]},
        {"identities": [True]},
        {"written": ["x"]},
        {"written": [1.5]},
        {"read": [-1]},
        {"ends": [[1, 2, "other"]]},
        {"ends": [[1]]},
        {"ends": 7},
        {"rejects": [["a"]]},
        {"misfits": [["a", 1]]},
        {"tables": [None]},
        {"scheme": "unknown"},
    ],
)
def test_what_is_no_fragment_is_refused(change: dict[str, Any]) -> None:
    document, payload = sent()
    document["fragments"][0].update(change)
    with pytest.raises(LogProtocolError):
        decode_fragments(orjson.dumps(document), payload, {})


@pytest.mark.parametrize(
    ("metadata", "payload"),
    [
        (b"", b""),
        (b"[]", b""),
        (b"{}", b""),
        (orjson.dumps(sent()[0]), b""),
        (orjson.dumps(sent()[0]), b"not compressed"),
        (orjson.dumps(sent()[0]), compressed(b"x" * (1 << 20))),
    ],
)
def test_bytes_of_another_kind_are_refused(metadata: bytes, payload: bytes) -> None:
    with pytest.raises(LogProtocolError):
        decode_fragments(metadata, payload, {})


def test_more_than_any_batch_takes_is_refused_before_it_is_sent() -> None:
    check_size("s", MAX_PAYLOAD)
    with pytest.raises(LogRequestError, match=r"shard s: one call emitted \d+ bytes of deltas.* maxRecords"):
        check_size("s", MAX_PAYLOAD + 1)
