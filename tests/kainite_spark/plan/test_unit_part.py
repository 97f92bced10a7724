"""What one entry of the log has of a unit."""

from __future__ import annotations

import pickle

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.format.deltas import read_deltas
from kainite.log.format.entry import Entry
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, UnitEnd
from kainite.uow.signature import Signatures
from kainite_spark.plan.unit_part import UnitPart, unit_part
from support.apply_world import insert
from support.main_log import MainLog


def entries(*parts: tuple[Delta, ...]) -> list[Entry]:
    """Returns the entries of a unit that comes in several appends."""
    store = MemoryStore()
    log = MainLog(store, Signatures(None))
    for part in parts[:-1]:
        log.append(log.fragment("T", *part))
    count = sum(len(part) for part in parts)
    log.append(log.fragment("T", *parts[-1], ends=(UnitEnd(count),)))
    found = [entry for batch in store.read_batches("0", 0) for entry in batch.entries]
    return [entry for entry in found if entry.kind.name in ("FRAGMENT", "UNIT")]


def test_the_last_entry_says_what_the_unit_is_and_each_has_its_own_deltas() -> None:
    fragment, unit = (unit_part(9, n, entry) for n, entry in enumerate(entries((insert(1),), (insert(2), insert(3)))))
    assert [delta.key for delta in fragment.deltas()] == [{"id": 1}]
    assert [delta.key for delta in unit.deltas()] == [{"id": 2}, {"id": 3}]
    assert fragment.head is None
    assert unit.head is not None
    assert (unit.head.uow, unit.head.size, len(unit.head.written)) == ("T", 3, 3)
    assert (unit.unit, unit.number) == (9, 1)


def test_a_part_goes_to_a_task_as_it_is() -> None:
    (entry,) = entries((insert(1),))
    part = unit_part(0, 0, entry)
    assert pickle.loads(pickle.dumps(part)) == part


def test_places_that_do_not_count_are_left_out() -> None:
    (entry,) = entries((insert(1), insert(2), insert(3)))
    part = unit_part(0, 0, entry)
    assert [delta.key for delta in part._replace(without=(1,)).deltas()] == [{"id": 1}, {"id": 3}]
    assert read_deltas(part.data, ()) == part.deltas()


def test_deltas_that_cannot_be_decompressed_are_told_when_they_are_asked_for() -> None:
    with pytest.raises(LogCorruptError, match="no zlib"):
        UnitPart(0, 0, b"", fault="no zlib").deltas()
