"""Whether changes of a live table are missing, by what the offset of the extraction notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kainite.capture.mysql import same_place
from kainite.capture.mysql.taken_options import OTHERS, TakenOptions
from kainite.capture.truncate import OnTruncate
from kainite.extract.offsets.place import Place
from kainite.replicate.binlog_gaps import gaps_of
from support.binlog_loading import BinlogLoading, binlog_loading, following
from support.mariadb_source import source_database

ITEM = "CREATE TABLE item (id INT PRIMARY KEY)"


@pytest.fixture
def world(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BinlogLoading]:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)
    with (
        source_database(mariadb_source_server) as url,
        binlog_loading(url, postgres, tmp_path, [ITEM, "INSERT INTO item VALUES (1)"], [ITEM]) as made,
    ):
        yield made


def told(world: BinlogLoading) -> list[tuple[str, str, str]]:
    with psycopg.connect(world.ends.target) as connection:
        return [(one.verdict, one.found, one.mend) for one in gaps_of(world.ends, connection)]


def note(world: BinlogLoading, **since: int) -> None:
    """Stores an offset whose tables are read since these numbers."""
    offsets = world.ends.offsets
    tables = {OTHERS if name == "others" else name: number for name, number in since.items()}
    offsets.save(Place({**offsets.load().start, "options": TakenOptions(tables, OnTruncate.FAIL).as_json()}))


def test_nothing_is_missing_in_a_target_that_is_not_loaded(world: BinlogLoading) -> None:
    note(world, other=0)
    assert told(world) == []


def test_a_live_table_that_was_left_out_for_a_while_is_named_with_what_mends_it(world: BinlogLoading) -> None:
    world.load()
    with following(world) as follower:
        follower.catch_up()
        world.in_source("INSERT INTO item VALUES (2)")
        follower.catch_up()
    assert told(world) == []
    note(world, item=0, others=10**6)
    assert told(world) == []
    note(world, item=10**6, others=0)
    [(verdict, found, mend)] = told(world)
    assert (verdict, mend) == ("wrong", "kainite replicate reload public.item")
    assert found.startswith("public.item was copied as of transaction ")
    note(world, other=0)
    [(verdict, found, mend)] = told(world)
    assert (verdict, found) == (
        "wrong",
        "the extraction does not read public.item: its changes are missing in the target",
    )
    assert "--table item in extractorName" in mend
    Path(world.ends.offsets.path).unlink()
    [(verdict, found, mend)] = told(world)
    assert (verdict, mend) == ("warning", "extractorOffsetFile where this runs")
