"""Tables without keys, a target without tables, foreign keys without an order."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

from kainite.doctor.catalogue import some
from support.doctored import DoctoredFile


def change(doctored: DoctoredFile, ddl: str) -> None:
    with closing(sqlite3.connect(doctored.folder / "target.db")) as target:
        target.executescript(ddl)


def test_a_table_without_a_key(doctored: DoctoredFile) -> None:
    change(doctored, "CREATE TABLE bare (x integer)")
    [finding] = doctored.bad()
    assert (finding.state, finding.remedy) == ("warning", "ALTER TABLE bare ADD PRIMARY KEY (…)")


def test_tables_that_reference_each_other_have_no_order(doctored: DoctoredFile, postgres: str) -> None:
    with psycopg.connect(postgres) as target:
        target.execute("CREATE TABLE one (id integer PRIMARY KEY, other integer NOT NULL)")
        target.execute("CREATE TABLE two (id integer PRIMARY KEY, other integer NOT NULL REFERENCES one)")
        target.execute("ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES two")
    doctored.write(target=postgres)
    found = [finding for finding in doctored.bad(["run"]) if finding.area == "target"]
    assert [finding.state for finding in found] == ["wrong"]
    assert "one" in found[0].what


def test_a_target_without_tables(doctored: DoctoredFile) -> None:
    change(doctored, "DROP TABLE items")
    assert any("has no tables" in finding.what for finding in doctored.bad(["run"]))


def test_many_names_are_cut() -> None:
    assert some([str(number) for number in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
