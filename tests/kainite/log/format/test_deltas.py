"""The deltas of an entry: in its data or in its piece of a blob, without those that do not count."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.format.deltas import array_of, delta_items, deltas_of, dump_deltas, left_out, read_deltas
from kainite.log.format.entry import Entry, EntryKind, FragmentMeta, RefitMeta, UnitMeta
from kainite.uow.delta import Delta, Operation, Values
from kainite.uow.packing import Blob, Piece, pack

DELTAS = [Delta("t", Operation.UPSERT, {"id": key}, {"id": key}, {}, key) for key in range(4)]


@pytest.mark.parametrize("without", [(), (0,), (1, 3), (0, 1, 2, 3), (7,)])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", [EntryKind.UNIT, EntryKind.FRAGMENT])
def test_those_that_do_not_count_are_left_out(kind: EntryKind, packed: bool, without: tuple[int, ...]) -> None:
    unit = kind is EntryKind.UNIT
    meta = UnitMeta("T", 1, without=without) if unit else FragmentMeta("T", "s", 1, without=without)
    piece = pack([DELTAS])[0] if packed else None
    entry = Entry(kind, meta, data=b"" if packed else dump_deltas(DELTAS), piece=piece)
    counting = [delta for place, delta in enumerate(DELTAS) if place not in without]
    assert deltas_of(entry) == counting
    assert delta_items(entry) == [delta.to_json() for delta in counting]
    assert read_deltas(array_of(entry), left_out(entry)) == counting


def test_a_delta_reads_back_with_all_that_it_says() -> None:
    values = {
        "n": 2**64 - 1,
        "m": -(2**63),
        "f": 0.1,
        "g": 5e-324,
        "t": 'a"\\\0\u2028é😀',
        "d": [1, {"x": None}],
        "b": True,
    }
    deltas = [
        Delta("t", Operation.UPDATE, {"id": 1}, values, {"f": -0.0}, 7),
        Delta("t", Operation.DELETE, {"id": "1"}, may_miss=True),
        Delta("t", Operation.UPSERT, row={"id": 1}, values=Values.DSQL_SPARSE),
        Delta("t", Operation.TRUNCATE),
    ]
    assert read_deltas(dump_deltas(deltas)) == deltas
    assert [delta.to_json() for delta in deltas] == orjson.loads(dump_deltas(deltas))


def test_an_entry_without_deltas_has_none() -> None:
    entry = Entry(EntryKind.UNIT, UnitMeta("T", 0))
    assert (array_of(entry), deltas_of(entry), delta_items(entry)) == (b"", [], [])


def test_all_deltas_of_a_refit_count() -> None:
    assert deltas_of(Entry(EntryKind.REFIT, RefitMeta(1, "T", 4), data=dump_deltas(DELTAS))) == DELTAS


@pytest.mark.parametrize("data", [b"x", b"3", b"[3]", b"[{}]", b'[{"table":"t","op":"other"}]'])
def test_what_is_no_list_of_deltas_is_corrupt(data: bytes) -> None:
    entry = Entry(EntryKind.UNIT, UnitMeta("T", 1), piece=Piece(Blob.of(data), 0, len(data)))
    with pytest.raises(LogCorruptError, match="deltas"):
        deltas_of(entry)


def test_a_blob_that_cannot_be_decompressed_is_corrupt() -> None:
    blob = replace(Blob.of(b"[]"), frame=b"no frame")
    with pytest.raises(LogCorruptError, match="cannot be decompressed"):
        deltas_of(Entry(EntryKind.UNIT, UnitMeta("T", 1), piece=Piece(blob, 0, 2)))
