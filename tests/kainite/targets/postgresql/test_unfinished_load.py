"""What a load has taken from a target for a while."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate import ledger, table_ledger
from kainite.replicate.ledger import LoadStep, StatementStep
from kainite.replicate.load_ledger import LoadLedger
from kainite.targets.postgresql.unfinished_load import foreign_keys_off, is_unfinished
from kainite.uow.catalogue.reflection import reflect


def test_a_target_that_was_never_loaded_lacks_nothing(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        assert not is_unfinished(connection)
        assert foreign_keys_off(connection, "public", ["item"]) == ()


def test_keys_that_follow_behind_the_rows_are_waited_for(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in ledger.CREATE:
            connection.execute(statement)
        step = LoadStep(
            1, ledger.STATEMENT_STAGE, "public", "item", StatementStep("ALTER TABLE item ADD PRIMARY KEY (id)")
        )
        LoadLedger(connection, "log/0").prepare("CREATE TABLE item (id int)", [step])
        assert is_unfinished(connection)
        with pytest.raises(TargetUnavailableError, match="are made at the end of its load"):
            reflect(postgres)


def test_a_foreign_key_whose_column_is_gone_does_not_count(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, up int)")
        for statement in table_ledger.CREATE:
            connection.execute(statement)
        noted = (
            "log/0",
            "item_up",
            "public",
            "item",
            "public",
            "item",
            ["up"],
            ["id"],
            False,
            "a",
            "a",
            "ALTER …",
            None,
        )
        connection.execute(table_ledger.NOTE_FOREIGN_KEY, noted)
        [found] = foreign_keys_off(connection, "public", ["item"])
        assert (found.table, found.name, found.columns, found.parent_columns) == ("item", "item_up", ["up"], ["id"])
        assert foreign_keys_off(connection, "public", ["other"]) == []
        connection.execute("ALTER TABLE item DROP up")
        assert foreign_keys_off(connection, "public", ["item"]) == []
