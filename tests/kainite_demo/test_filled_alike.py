"""Both ends have the same tables and rows where one is MariaDB, and differences are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson
import psycopg
import pytest

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.file import read_catalogue
from kainite_demo import invariant, pgbench
from kainite_demo.compare import compare
from kainite_demo.filled_alike import fill_source, fill_target, make_both
from kainite_demo.invariant import Invariant
from kainite_demo.reading import reading
from kainite_demo.run_layout import RunLayout
from support.mariadb_source import source_database

ROWS = 1 + 10 + 100_000


@pytest.fixture
def layouts(
    mariadb_source_server: str, mariadb: str, source: SourceSlot, postgres_server: str, postgres: str, tmp_path: Path
) -> Iterator[Callable[[str], RunLayout]]:
    """Gives the layout of a run by the kinds of its ends."""

    def layout(kinds: str) -> RunLayout:
        begin, end = kinds.split()
        with psycopg.connect(source.url) as connection:
            connection.execute("DROP TABLE item, note")
        url = mariadb_source if begin == "mariadb" else postgres_server.replace("/postgres?", f"/{source.slot}?")
        slot = SourceSlot(url, source.slot, "kainite_demo")
        return RunLayout(tmp_path, slot, mariadb if end == "mariadb" else postgres, "http://127.0.0.1:1")

    with source_database(mariadb_source_server) as mariadb_source:
        yield layout


def change(url: str, sql: str) -> None:
    if url.startswith("mariadb"):
        with closing(connect(url)) as connection:
            connection.query(sql)
    else:
        with psycopg.connect(url) as connection:
            connection.execute(sql.encode())


@pytest.mark.parametrize("kinds", ["mariadb mariadb", "mariadb postgresql", "postgresql mariadb"])
def test_both_ends_are_filled_alike_and_the_extractor_begins_behind(
    kinds: str, layouts: Callable[[str], RunLayout]
) -> None:
    layout = layouts(kinds)
    make_both(layout)
    fill_source(layout, 1)
    fill_target(layout, 1)
    assert compare(layout.source.url, layout.target, pgbench.TABLES) == ROWS
    assert set(read_catalogue(layout.catalogue).tables) == set(pgbench.TABLES)
    begin = orjson.loads(layout.offset_file.path.read_bytes())["start"]
    assert begin["number"] == 0
    assert begin.keys() >= ({"file", "position"} if kinds.startswith("mariadb") else {"lsn"})

    invariant.make_quick(layout.target)
    seen = Invariant()
    with reading(layout.target) as opened:
        seen.look(opened)
    assert (seen.looks, seen.latest.transactions) == (1, 0)

    change(layout.target, "UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 70000")
    with pytest.raises(DemoError, match=r"pgbench_accounts differs: the source has .*'70000'.*, the target .*'70000'"):
        compare(layout.source.url, layout.target, pgbench.TABLES)
    with reading(layout.target) as opened, pytest.raises(DemoError, match="torn transaction"):
        seen.look(opened)
