"""The batch codec: what is written reads back, golden bytes stay, garbage is one clear error."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogCorruptError, LogError
from kainite.base.position import Position
from kainite.log.format import batch_codec
from kainite.log.format.batch_codec import MAGIC, decode, decode_meta, encode
from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, PositionMeta, ReqId, UnitMeta
from kainite.log.store.memory import without_data
from support.log_builders import BATCHES, batch, entry

# A batch of one POSITION entry, written by hand after the layout in the codec's docstring.
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


@given(BATCHES)
def test_a_batch_reads_back(written: Batch) -> None:
    assert decode(*encode(written)) == written


@given(BATCHES)
def test_the_index_alone_gives_everything_but_data(written: Batch) -> None:
    index, _ = encode(written)
    assert decode(index, None) == without_data(written)


def test_a_fragment_written_before_deltas_had_digests_is_read() -> None:
    fields = {"uow": "T", "shard": "s", "count": 2, "ordinals": [0], "end_count": 2, "number": 5,
              "unit_kind": "normal", "causes": [], "offending": None}  # fmt: skip
    assert decode_meta(EntryKind.FRAGMENT, fields) == FragmentMeta("T", "s", 2, (0,), 2, 5)


def test_golden_bytes_are_written_and_read() -> None:
    index, payload = encode(GOLDEN_BATCH)
    assert index.startswith(MAGIC)
    assert decompressed(index[len(MAGIC) :], 1000) == GOLDEN_INDEX
    assert decompressed(payload, 1000) == b"hi"
    assert decode(MAGIC + compressed(GOLDEN_INDEX), compressed(b"hi")) == GOLDEN_BATCH


def test_entry_sizes_beyond_64_bits_survive() -> None:
    position = PositionMeta("shardId-0", Position(49657461283491282382238472384728347283472834728347, 3))
    written = Batch(0, 1, 0, (Entry(EntryKind.POSITION, position),))
    assert decode(*encode(written)) == written


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_flipped_payload_byte_is_found(place: int) -> None:
    index, payload = encode(batch(0, data=b"some data that matters"))
    raw = bytearray(decompressed(payload, 1000))
    raw[place] ^= 1
    with pytest.raises(LogCorruptError, match="CRC-32"):
        decode(index, compressed(bytes(raw)))


def test_another_batchs_payload_is_refused() -> None:
    index, _ = encode(batch(0, data=b"one"))
    _, other = encode(batch(0, data=b"longer"))
    with pytest.raises(LogCorruptError):
        decode(index, other)


def test_a_length_that_lies_does_not_allocate() -> None:
    index, _ = encode(batch(0))
    lying = bytes.fromhex("28b52ffde0") + (1 << 40).to_bytes(8, "little")  # a frame's header with a size
    with pytest.raises(LogCorruptError):
        decode(MAGIC + lying + index, None)


@given(st.binary(max_size=400))
def test_garbage_is_one_clear_error(garbage: bytes) -> None:
    for index in (garbage, MAGIC + garbage, MAGIC + compressed(garbage)):
        with pytest.raises(LogCorruptError):
            decode(index, None)


@given(BATCHES, st.data())
def test_a_damaged_index_never_reads_as_another_batch(written: Batch, data: st.DataObject) -> None:
    raw = bytearray(decompressed(encode(written)[0][len(MAGIC) :], 1 << 30))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        read = decode(MAGIC + compressed(bytes(raw)), None)
    except LogCorruptError:
        return
    assert isinstance(read, Batch)


def test_entries_are_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry().data = b""  # type: ignore[misc]


@pytest.mark.parametrize("part", ["index", "payload"])
def test_what_no_reader_takes_is_not_written(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(batch_codec, "MAX_DECOMPRESSED", 1_000)
    meta = UnitMeta("T", 1, shards=("s" * 2_000,) if part == "index" else ())
    entry = Entry(EntryKind.UNIT, meta, data=b"x" * 2_000 if part == "payload" else b"")
    with pytest.raises(LogError, match=f"{part} of .* was not written: let the children emit less"):
        batch_codec.encode(Batch(0, 1, 0, (entry,)))
