"""Which tables of a MariaDB source may be loaded by themselves; test_binlog_table_job.py loads some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, SourceError
from kainite.capture.mysql.extractor import BinlogReading
from kainite.capture.mysql.taken_options import OTHERS, TakenOptions
from kainite.capture.truncate import OnTruncate
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import offset_of
from kainite.replicate.binlog_table import check_point, check_read, paired_table, wait_until_read
from kainite.settings import ExtractOffsets
from kainite.uow.catalogue.tables import Catalogue
from support.mariadb_source import execute, source_database
from support.replicas import run, tables_of

BOTH = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(9))"
ACTS = (
    "CREATE TABLE line (id INT PRIMARY KEY, item INT, CONSTRAINT one FOREIGN KEY (item) REFERENCES item (id)"
    " ON DELETE CASCADE)"
)


@pytest.fixture
def ends(mariadb_source_server: str, postgres: str, tmp_path: Path) -> Iterator[BinlogEnds]:
    with source_database(mariadb_source_server) as url:
        execute(url, BOTH)
        run(postgres, BOTH)
        offsets = OffsetFile(tmp_path / "offset", "stream", ExtractOffsets.KAINITE)
        offsets.create(Place({"file": "binlog.000001", "position": 4, "number": 7}))
        yield BinlogEnds(BinlogReading(url), postgres, "log/0", offsets)


@pytest.fixture
def target(ends: BinlogEnds) -> Catalogue:
    return tables_of(ends.target)


@pytest.mark.parametrize("name", ["item", "public.item"])
def test_a_table_is_found_under_the_names_of_both_sides(ends: BinlogEnds, target: Catalogue, name: str) -> None:
    found = paired_table(ends, name, target)
    assert (found.source.name, found.place) == ("item", ("public", "item"))


@pytest.mark.parametrize(
    ("statement", "name", "said"),
    [
        ("SELECT 1", "none", "the source has no table none"),
        ("CREATE TABLE more (id INT PRIMARY KEY)", "more", "the target has no table more: make it by hand"),
        ("ALTER TABLE item ADD COLUMN other INT", "item", "has no column other"),
        ("ALTER TABLE item ENGINE = MyISAM", "item", "has no transactions"),
        (ACTS, "item", r"line \(one\) changes rows in the source"),
    ],
)
def test_what_cannot_be_loaded_by_itself_is_refused(
    ends: BinlogEnds, target: Catalogue, statement: str, name: str, said: str
) -> None:
    execute(ends.source.url, statement)
    with pytest.raises((SourceError, CatalogueError), match=said):
        paired_table(ends, name, target)


def test_a_foreign_key_to_a_table_that_is_not_read_refuses_nothing(ends: BinlogEnds, target: Catalogue) -> None:
    execute(ends.source.url, ACTS)
    alone = replace(ends, source=replace(ends.source, tables=("item",)))
    assert paired_table(alone, "item", target).place == ("public", "item")
    with pytest.raises(SourceError, match="--table item"):
        paired_table(replace(ends, source=replace(ends.source, tables=("other",))), "item", target)


def test_an_extraction_that_reads_other_tables_is_told(ends: BinlogEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.replicate.binlog_table.READ_S", 0.0)
    assert offset_of(ends).number == 7
    wait_until_read(ends, "item")  # nobody has read from where a person begins
    options = TakenOptions({"line": 5}, OnTruncate.FAIL)
    ends.offsets.save(Place({**offset_of(ends).as_json(), "options": options.as_json()}))
    with pytest.raises(SourceError, match="reads line alone: start kainite extract anew"):
        wait_until_read(ends, "item")
    for tables in (["line", "item"], []):
        with pytest.raises(SourceError, match="reads line alone: start kainite extract anew"):
            check_read(ends, tables)
    check_read(ends, ["line"])


@pytest.mark.parametrize(
    ("since", "tables", "point", "said"),
    [
        ({"item": 6}, ["item"], 7, ""),
        (
            {"item": 7},
            ["item"],
            7,
            "reads item without a gap since transaction 7 alone, and the copy has those up to 6",
        ),
        ({"item": 3, OTHERS: 7}, ["item"], 4, ""),
        ({"item": 3, OTHERS: 7}, ["line"], 7, "since transaction 7"),
        ({"item": 3, OTHERS: 7}, [], 7, "reads all tables without a gap since transaction 7"),
        ({"item": 3, OTHERS: 6}, [], 7, ""),
        ({"line": 1}, ["item"], 7, "reads line alone"),
        (None, ["item"], 8, ""),
        (None, ["item"], 7, "since transaction 7"),
    ],
)
def test_a_copy_from_before_a_gap_is_worth_nothing(
    ends: BinlogEnds, since: dict[str, int] | None, tables: list[str], point: int, said: str
) -> None:
    options = {} if since is None else {"options": TakenOptions(since, OnTruncate.FAIL).as_json()}
    ends.offsets.save(Place({**offset_of(ends).as_json(), **options}))
    with pytest.raises(SourceError, match=said) if said else nullcontext():
        check_point(ends, tables, point)
