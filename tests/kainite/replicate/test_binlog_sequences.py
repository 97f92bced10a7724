"""AUTO_INCREMENT columns set the target's sequences, forward alone."""

from __future__ import annotations

from pathlib import Path

import psycopg

from kainite.replicate.binlog_sequences import CountedColumn, counted_columns, look_at_counted, set_counted
from support.binlog_loading import binlog_loading
from support.mariadb_source import source_database
from support.replicas import tables_of

SOURCE = (
    "CREATE TABLE item (`Id` INT AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO item VALUES (41, 1)",
    "CREATE TABLE line (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE bare (id INT AUTO_INCREMENT PRIMARY KEY)",
    "CREATE TABLE alone (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE SEQUENCE ticket",
)  # fmt: skip
TARGET = (
    'CREATE TABLE item ("Id" serial PRIMARY KEY, v int)', "CREATE TABLE line (id bigserial PRIMARY KEY)",
    "CREATE TABLE bare (other int PRIMARY KEY)", "SELECT setval('line_id_seq', 9)",
)  # fmt: skip


def test_sequences_are_set_to_what_the_source_gives_next(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, SOURCE, TARGET) as world,
        psycopg.connect(postgres, autocommit=True) as target,
    ):
        found = counted_columns(world.ends, tables_of(postgres))
        assert set(found.columns) == {
            CountedColumn("item.Id", 42, 'public."item_Id_seq"'), CountedColumn("line.id", 1, "public.line_id_seq"),
            CountedColumn("bare.id", 1, None),
        }  # fmt: skip
        told = [(one.verdict.value, one.found) for one in look_at_counted(found)]
        assert told == [
            ("warning", "the target has no sequence for bare.id"),
            ("warning", "the source's own sequences are not set: ticket"),
            ("ok", "2 are set at the end"),
        ]
        assert set_counted(target, found.columns) == ['public."item_Id_seq"']
        assert set_counted(target, found.columns) == []
        assert target.execute('INSERT INTO item (v) VALUES (2) RETURNING "Id"').fetchone() == (42,)
        assert target.execute("SELECT nextval('line_id_seq')").fetchone() == (10,)
