"""The batch codec: what is written reads back, golden bytes stay, garbage is one clear error."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogCorruptError, LogError
from kainite.base.position import Position
from kainite.log.format import batch_codec
from kainite.log.format.batch_codec import MAGIC, decode, encode
from kainite.log.format.deltas import array_of
from kainite.log.format.entry import Batch, Entry, EntryKind, PositionMeta, ReqId, UnitMeta
from kainite.store.memory import without_data
from kainite.uow.packing import Blob, Piece
from kainite.uow.touches import Touched
from support.log_builders import BATCHES, batch

BLOB = Blob(compressed(b"[1][2,3]", 1), 8, zlib.crc32(compressed(b"[1][2,3]", 1)))
OWN = compressed(b"hi")
"""The payload's first frame."""

# Written by hand after the layout in docs/formats.md: a POSITION entry, and a UNIT entry with a piece of a blob.
GOLDEN_INDEX = b"".join(
    (
        b"\x96\x2a\x07",  # first id 42, generation 7
        b"\xcf" + bytes.fromhex("0000018bcfe56800"),  # 2023-11-14T22:13:20Z in milliseconds
        b"\x91\x93" + bytes([len(BLOB.frame)]) + b"\xce" + BLOB.crc.to_bytes(4, "big") + b"\x08",  # the blob
        bytes([len(OWN)]),
        b"\x92",  # two records
        b"\x9b\x94\x04\xa3s-0\xa44963\x00",  # POSITION
        b"\x01\xc4\x10" + bytes.fromhex("ffffffffffffffff0000000000000005"),  # one written signature, one read
        b"\x90\x90\xc0\x94\x01\x02\x03\x04",  # no tables, no scheme; the request
        b"\x00\x00\x02\xce\xd8\x93\x2a\xac",  # no blob; length and CRC-32 of the data
        b"\x9b\x9e\x02\xa1T\x01\x90\x90\xc0\xa6normal\xc0\xc0\xc0\x91\x01\xc0\xc0\xc2",  # UNIT
        b"\x00\xc4\x00",  # no signatures
        b"\x91\xa1t\x90\xa1s\xc0",  # a table, no unsigned one, a scheme, no request
        b"\x01\x03\x05\x00",  # five bytes of the first blob, from the third on
    )
)
GOLDEN_BATCH = Batch(
    42,
    7,
    1_700_000_000_000,
    (
        Entry(
            EntryKind.POSITION,
            PositionMeta.of("s-0", Position(4963)),
            Touched(frozenset({2**64 - 1}), frozenset({5})),
            b"hi",
            ReqId(1, 2, 3, 4),
        ),
        Entry(
            EntryKind.UNIT,
            UnitMeta("T", 1, without=(1,)),
            Touched(tables=("t",), scheme="s"),
            piece=Piece(BLOB, 3, 5),
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


def test_golden_bytes_are_written_and_read() -> None:
    index, payload = encode(GOLDEN_BATCH)
    assert index.startswith(MAGIC)
    assert decompressed(index[len(MAGIC) :], 1000) == GOLDEN_INDEX
    assert payload == compressed(b"hi") + BLOB.frame
    assert decode(MAGIC + compressed(GOLDEN_INDEX), payload) == GOLDEN_BATCH
    assert decode(MAGIC + compressed(GOLDEN_INDEX), None) == without_data(GOLDEN_BATCH)


def test_signatures_that_came_as_bytes_are_copied() -> None:
    written, read = frozenset({3, 2**64 - 1}), frozenset({7})
    signed = struct.pack(">3Q", *written, *read)
    plain = Entry(EntryKind.UNIT, UnitMeta("T", 1), Touched(written, read))
    copied = Batch(0, 1, 0, (replace(plain, signed=signed),))
    assert encode(copied) == encode(Batch(0, 1, 0, (plain,)))
    assert decode(*encode(copied)) == copied


def test_signatures_of_which_one_came_twice_are_written_once() -> None:
    entry = Entry(EntryKind.UNIT, UnitMeta("T", 1), Touched(frozenset({3})), signed=struct.pack(">2Q", 3, 3))
    assert decode(*encode(Batch(0, 1, 0, (entry,)))) == Batch(0, 1, 0, (entry,))


def test_a_later_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(LogCorruptError, match=r"version 2 of the log's format, and this release reads .* upgrade it"):
        decode(b"KL\x02" + compressed(GOLDEN_INDEX), None)


def test_entries_share_a_blob() -> None:
    pieces = [Piece(BLOB, 0, 3), Piece(BLOB, 3, 5)]
    entries = tuple(Entry(EntryKind.UNIT, UnitMeta("T", 1), piece=piece) for piece in pieces)
    index, payload = encode(Batch(0, 1, 0, entries))
    assert payload == BLOB.frame
    found = decode(index, payload).entries
    assert [array_of(one) for one in found] == [b"[1]", b"[2,3]"]
    assert found[0].piece is not None
    assert found[1].piece is not None
    assert found[0].piece.blob is found[1].piece.blob


@given(st.integers(0, len(BLOB.frame) - 1))
def test_a_flipped_byte_of_a_blob_is_found(place: int) -> None:
    index, payload = encode(GOLDEN_BATCH)
    raw = bytearray(payload)
    raw[len(payload) - 1 - place] ^= 1
    with pytest.raises(LogCorruptError, match="CRC-32"):
        decode(index, bytes(raw))


@pytest.mark.parametrize("change", [b"", b"x", None])
def test_a_payload_of_another_length_is_refused(change: bytes | None) -> None:
    index, payload = encode(GOLDEN_BATCH)
    with pytest.raises(LogCorruptError):
        decode(index, payload[:-1] if change is None else payload + b"x" if change else b"")


def test_entry_sizes_beyond_64_bits_survive() -> None:
    position = PositionMeta.of("shardId-0", Position(49657461283491282382238472384728347283472834728347, 3))
    written = Batch(0, 1, 0, (Entry(EntryKind.POSITION, position),))
    assert decode(*encode(written)) == written


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_flipped_payload_byte_is_found(place: int) -> None:
    index, payload = encode(batch(0, data=b"some data that matters"))
    raw = bytearray(decompressed(payload, 1000))
    raw[place] ^= 1
    with pytest.raises(LogCorruptError, match="CRC-32"):
        decode(index, compressed(bytes(raw)))


def test_a_piece_beyond_its_blob_is_refused() -> None:
    written = Batch(0, 1, 0, (Entry(EntryKind.UNIT, UnitMeta("T", 1), piece=Piece(BLOB, 3, 6)),))
    index, payload = encode(written)
    for body in (None, payload):
        with pytest.raises(LogCorruptError, match="beyond its blob"):
            decode(index, body)


def test_a_blob_larger_than_any_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_codec, "MAX_BLOB", 7)
    with pytest.raises(LogError, match=r"blob of 8 bytes .* was not written"):
        encode(replace(GOLDEN_BATCH))


def test_a_batchs_bytes_are_made_once_and_are_no_other_batchs() -> None:
    one = batch(0, data=b"one")
    assert encode(one) is encode(one)
    assert decode(*encode(replace(one, entries=batch(0, data=b"other").entries))).entries[0].data == b"other"


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


def test_values_that_are_nested_too_deeply_are_one_clear_error() -> None:
    deep = b"\x91" * 100_000 + b"\x90"
    control = b"\x9b\x9f\x05\xa1a\xc0\x00\xc0\x00" + 9 * deep  # a meta may have more fields than this release knows
    with pytest.raises(LogCorruptError, match="recursion"):
        decode(MAGIC + compressed(b"\x96\x00\x00\x00\x90\x00\x91" + control), None)


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


@pytest.mark.parametrize("part", ["index", "payload"])
def test_what_no_reader_takes_is_not_written(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(batch_codec, "MAX_DECOMPRESSED", 1_000)
    meta = UnitMeta("T", 1, shards=("s" * 2_000,) if part == "index" else ())
    entry = Entry(EntryKind.UNIT, meta, data=b"x" * 2_000 if part == "payload" else b"")
    with pytest.raises(LogError, match=f"{part} of .* was not written: let the children emit less"):
        batch_codec.encode(Batch(0, 1, 0, (entry,)))
