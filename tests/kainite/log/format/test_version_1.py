"""Batches of version 1 are read for ever; what is damaged is one clear error."""

from __future__ import annotations

import pytest

from kainite.base.compression import compressed
from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
from kainite.log.format.batch_codec import MAGIC_1, decode
from kainite.log.format.entry import Batch, Entry, EntryKind, PositionMeta, ReqId
from kainite.store.memory import without_data

# A batch of one POSITION entry, written by hand after the layout in the reader's docstring.
GOLDEN_INDEX = bytes.fromhex(
    "000000000000002a"  # first id 42
    "00000007"  # generation 7
    "0000018bcfe56800"  # 2023-11-14T22:13:20Z in milliseconds
    "00000001"  # one record
    "04"  # POSITION
    "00000001000000020000000300000004"  # ReqId
    "00000001" "00000001"  # one written signature, one read
    "00000010" "00000002" "d8932aac"  # lengths of meta and data, CRC-32 of the data
    "ffffffffffffffff" "0000000000000005"
) + b'["s-0","4963",0]'  # fmt: skip
GOLDEN_BATCH = Batch(
    42,
    7,
    1_700_000_000_000,
    (
        Entry(
            EntryKind.POSITION,
            PositionMeta("s-0", Position(4963)),
            frozenset({2**64 - 1}),
            frozenset({5}),
            b"hi",
            ReqId(1, 2, 3, 4),
        ),
    ),
)


def test_golden_bytes_are_read() -> None:
    index = MAGIC_1 + compressed(GOLDEN_INDEX)
    assert decode(index, compressed(b"hi")) == GOLDEN_BATCH
    assert decode(index, None) == without_data(GOLDEN_BATCH)


@pytest.mark.parametrize("payload", [b"", b"hi", compressed(b"ho"), compressed(b"h"), compressed(b"hi!")])
def test_another_payload_is_refused(payload: bytes) -> None:
    with pytest.raises(LogCorruptError):
        decode(MAGIC_1 + compressed(GOLDEN_INDEX), payload)


@pytest.mark.parametrize("length", range(len(GOLDEN_INDEX)))
def test_an_index_cut_short_is_refused(length: int) -> None:
    with pytest.raises(LogCorruptError):
        decode(MAGIC_1 + compressed(GOLDEN_INDEX[:length]), None)
