"""A log that an earlier release wrote, in batches of version 1, goes on: units are collected, applied and judged."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import orjson

from kainite.base import compression
from kainite.log.contract import Slot
from kainite.log.format.batch_codec import MAGIC, MAGIC_1, decode, encode
from kainite.log.format.entry import Batch, Fault, UnitStatus
from kainite.log.state.loading import load_state
from kainite.log.views.unit_detail import read_detail
from kainite.log.views.unit_table import read_rows
from kainite.owner.audit.trail import frame
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.signing import Signing
from kainite_spark.targets.opening import open_target
from support.apply_world import World, insert, noted

GOLDEN = Path(__file__).parents[2] / "kainite/log/format/golden_version_1.json"
"""Three batches of version 1 on the tables of the apply job's tests: a whole unit, which inserts items 1 and 2; a unit
``open``, with item 3 and without an end; and a unit ``misfit``, which sets a column ``colour`` that there is not."""


def golden_batches() -> list[Batch]:
    found = []
    for stored in json.loads(GOLDEN.read_text()):
        index, payload = base64.b64decode(stored["index"]), base64.b64decode(stored["payload"])
        assert index.startswith(MAGIC_1)
        found.append(decode(index, payload))
    return found


class EncodingStore(MemoryStore):
    """A store through which every batch passes as bytes, and that keeps their magic numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.magic: list[bytes] = []

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        index, payload = encode(batch)
        self.magic.append(index[:3])
        return super().put_batch(partition, decode(index, payload), nonce)


def world_of_version_1(folder: Path) -> World:
    store = EncodingStore()
    for batch in golden_batches():
        assert MemoryStore.put_batch(store, "0", batch, f"old {batch.first_id}") is None
    world = World(store, f"sqlite:///{folder}/target.db")
    world.log.state = load_state(store, "0", names=True)
    return world


def test_units_are_collected_and_applied(tmp_path: Path) -> None:
    world = world_of_version_1(tmp_path)
    log = world.log
    assert log.statuses() == {"whole": UnitStatus.IN_PROGRESS, "misfit": UnitStatus.FAILED}
    log.append(log.fragment("open", insert(3), *noted("open", insert(4)), ends=(UnitEnd(3),)))  # item 3 comes again
    log.unit("new", *noted("new", insert(5)))
    assert set(world.store.magic) == {MAGIC}  # type: ignore[attr-defined]
    world.apply()
    assert world.items().keys() == {1, 2, 3, 4, 5}
    assert world.journal() == ["new", "open", "whole"]
    assert log.statuses() == {"misfit": UnitStatus.FAILED}


def test_a_misfit_is_judged_anew_and_applied(tmp_path: Path) -> None:
    world = world_of_version_1(tmp_path)
    world.database.run("ALTER TABLE item ADD COLUMN colour bigint")
    world.catalogue = reflect(world.database.url)
    world.target = open_target(world.database.target, world.catalogue)
    world.log.signatures = Signing(world.catalogue)
    assert world.log.unit("new", *noted("new", insert(5))) == world.log.state.next_id - 2
    assert world.log.ask("retry", "misfit") == "ok"
    world.apply()
    assert world.database.rows("SELECT v, colour FROM item WHERE id = 1") == [(5, 1)]
    assert world.log.statuses() == {}


def test_views_and_the_audit_trail_show_its_units(tmp_path: Path) -> None:
    world = world_of_version_1(tmp_path)
    world.log.append(world.log.fragment("open", *noted("open", insert(4)), ends=(UnitEnd(3),)))
    trail = compression.decompressed(frame(read_rows(world.store, "0")), 10**6)
    lines = [orjson.loads(line) for line in trail.splitlines()]
    shown = {line["uow"]: line["signature"] for line in lines}
    assert shown == {"whole": ["item(1)", "item(2)", "journal()"], "misfit": ["item(1)", "journal()"],
                     "open": ["item(3)", "item(4)", "journal()"]}  # fmt: skip
    detail = read_detail(world.store, "0", "open")
    assert detail is not None
    assert [delta.get("key") for delta in detail.deltas] == [{"id": 3}, {"id": 4}, None]


def test_what_the_earlier_release_failed_is_failed(tmp_path: Path) -> None:
    unit = world_of_version_1(tmp_path).log.state.find("misfit")
    assert unit is not None
    assert unit.fault is Fault.MISFIT
    assert Delta("item", Operation.UPDATE, {"id": 1}, {"v": 5, "colour": 1}, {}).table in unit.tables
