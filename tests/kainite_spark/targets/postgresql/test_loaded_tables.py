"""What is left out of units because a load has brought it."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.log.format.deltas import read_deltas
from kainite.replicate import ledger, table_ledger
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.held_deltas import HeldDeltas, NewUnits
from kainite_spark.targets.postgresql import loaded_tables as module
from kainite_spark.targets.postgresql.ledger import CREATE_FENCE
from kainite_spark.targets.postgresql.loaded_tables import (
    LoadedTables,
    loaded_tables,
    own_statements,
    refuse_while_loading,
)

FENCE = Fence("log/0", 1, 0)


def unit(uow: str, *tables: str) -> Unit:
    return Unit(1, uow, tuple(Delta(table, Operation.INSERT, {}, {"id": 1}, {}) for table in tables))


def loaded(connection: psycopg.Connection, state: str, **positions: str) -> None:
    for statement in (*ledger.CREATE, *table_ledger.CREATE, CREATE_FENCE):
        connection.execute(statement)
    connection.execute("INSERT INTO kainite_load (log_partition, generation, state) VALUES ('log/0', 1, %s)", [state])
    for name, lsn in positions.items():
        connection.execute(ledger.NOTE_TABLES, ("log/0", lsn, ["public"], [name]))


def test_deltas_before_their_tables_point_are_left_out_and_no_others(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
        connection.execute(CREATE_FENCE)
        known = LoadedTables(reflect(postgres))
        assert not known.is_known(FENCE)
        known.read(connection, FENCE)
        assert known.is_known(FENCE)
        assert not known.is_known(Fence("log/0", 2, 0))
        units = [unit("pg-7-0/9", "item", "other")]
        assert known.what_is_new(units).units is units  # nothing was loaded
        loaded(connection, "live", item="0/10")
        known.read(connection, FENCE)
    tables = {
        one.uow: [delta.table for delta in one.deltas]
        for one in known.what_is_new([
            unit("pg-7-0/F", "item", "public.item", "other"),
            unit("pg-8-0/10", "item", "other"),
            unit("pg-9-1/0", "item"),
            unit("another source's 0/1", "item"),
            unit("repair-20261123T143015Z-4f2a-0/F", "item", "other"),
            unit("repair-20261123T143015Z-4f2a-0/10", "item"),
            unit("pg-7-0/F+late", "item", "other"),
        ]).units
    }  # fmt: skip
    assert tables == {
        "pg-7-0/F": ["other"], "pg-8-0/10": ["item", "other"], "pg-9-1/0": ["item"], "another source's 0/1": ["item"],
        "repair-20261123T143015Z-4f2a-0/F": ["other"], "repair-20261123T143015Z-4f2a-0/10": ["item"],
        "pg-7-0/F+late": ["other"],
    }  # fmt: skip


def test_a_catalogue_without_schemas_finds_its_tables_where_statements_do(postgres: str) -> None:
    """Looks where a table that is not found would be written although it is being loaded."""
    catalogue = Catalogue({"item": Table("item", None, {})})
    assert catalogue.default_schema is None
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY)")
        loaded(connection, "live", item="0/10")
        known = LoadedTables(catalogue)
        known.read(connection, FENCE)
    assert [one.deltas for one in known.what_is_new([unit("pg-7-0/F", "item")]).units] == [()]


def test_another_logs_load_is_not_looked_at(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY)")
        loaded(connection, "loading", item="0/10")
        assert loaded_tables(connection, "log/1") == []
        refuse_while_loading(connection, "log/1")
        with pytest.raises(TargetUnavailableError, match="tables are loading, and not live"):
            refuse_while_loading(connection, "log/0")


def test_a_target_that_was_never_loaded_is_let_in(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        refuse_while_loading(connection, "log/0")


def test_deltas_of_a_table_that_is_not_live_are_held_and_its_point_leaves_none_out(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
        loaded(connection, "live", item="0/10")
        connection.execute(table_ledger.RAISE_VERSION, ["log/0"])
        connection.execute(table_ledger.SET_LOADING, ("log/0", "public", "item"))
        known = LoadedTables(reflect(postgres))
        assert known.read(connection, FENCE)
        assert not known.read(connection, FENCE)
        before, mixed = unit("pg-7-0/F", "item"), unit("pg-8-0/10", "item", "other", "public.item")
        new = known.what_is_new([before, mixed])
        assert [[delta.table for delta in one.deltas] for one in new.units] == [[], ["other"]]
        place = ("public", "item")
        assert new.held == [
            HeldDeltas(place, 1, before.uow, before.deltas),
            HeldDeltas(place, 1, mixed.uow, (mixed.deltas[0], mixed.deltas[2])),
        ]
        for sql, values in own_statements(new, "log/0"):
            connection.execute(sql, values)
        assert connection.execute("SELECT uow FROM kainite_held_delta ORDER BY place").fetchall() == [
            ("pg-7-0/F",), ("pg-8-0/10",),
        ]  # fmt: skip
        assert connection.execute("SELECT reached::text FROM kainite_load_table").fetchall() == [("0/10",)]
        connection.execute(table_ledger.RAISE_VERSION, ["log/0"])
        assert known.read(connection, FENCE)


def test_a_table_that_the_catalogue_does_not_have_yet_learns_how_far_units_are(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY)")
        loaded(connection, "live")
        known = LoadedTables(reflect(postgres))
        connection.execute(table_ledger.SET_LOADING, ("log/0", "public", "made since"))
        known.read(connection, FENCE)
        assert known.what_is_new([unit("pg-7-0/1F"), unit("pg-7-0/1E")]).reached == 0x1F


def test_a_large_unit_is_held_in_pieces_and_in_several_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps values and statements below the 1 GB that PostgreSQL takes."""
    monkeypatch.setattr(module, "HELD_PIECE", 300)
    monkeypatch.setattr(module, "HELD_STATEMENT", 700)
    place = ("public", "item")
    deltas = tuple(Delta("item", Operation.INSERT, {"id": n}, {"id": n, "v": "x" * 40}, {}) for n in range(30))
    long = Delta("item", Operation.INSERT, {"id": 99}, {"id": 99, "v": "y" * 1000}, {})
    held = [HeldDeltas(place, 1, "pg-7-0/10", deltas), HeldDeltas(place, 2, "pg-8-0/20", (long,))]
    statements = [values for _, values in own_statements(NewUnits((), held), "log/0")]
    assert len(statements) > 2
    rows = [row for values in statements for row in zip(*values[1:], strict=True)]
    assert all(len(row[-1]) <= 300 for row in rows[:-1])
    assert [row[4] for row in rows] == [False] * (len(rows) - 2) + [True, True]
    assert tuple(delta for row in rows[:-1] for delta in read_deltas(row[-1])) == deltas
    assert read_deltas(rows[-1][-1]) == [long]


def test_changes_of_a_table_that_was_given_up_are_neither_applied_nor_held(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
        loaded(connection, "live", item="0/10")
        connection.execute("UPDATE kainite_load_table SET state = 'given up'")
        known = LoadedTables(reflect(postgres))
        known.read(connection, FENCE)
        [new] = [known.what_is_new([unit("pg-7-1/0", "item", "other"), unit("another source's 0/1", "item")])]
        assert [[delta.table for delta in one.deltas] for one in new.units] == [["other"], []]
        assert new.held == []
        for statement, values in own_statements(new, "log/0"):
            assert connection.execute(statement.encode(), values).rowcount == 0
