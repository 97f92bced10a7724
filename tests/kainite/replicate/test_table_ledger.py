"""Statements and names of the ledger of tables that are loaded by themselves."""

from __future__ import annotations

import psycopg

from kainite.replicate import ledger, table_ledger
from kainite.replicate.table_ledger import load_name, names_begin

PLACE = ("log/0", "public", "item")


def test_names_of_loads_are_those_of_one_log_alone() -> None:
    assert load_name("log/0", ("a", "b")).startswith(names_begin("log/0"))
    assert not load_name("log/01", ("a", "b")).startswith(names_begin("log/0"))


def test_what_was_reached_never_goes_back_and_begins_anew_with_the_load(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            connection.execute(statement)

        def reached(lsn: str) -> str:
            connection.execute(table_ledger.REACHED, (lsn, "log/0", lsn))
            [(found,)] = connection.execute("SELECT reached::text FROM kainite_load_table").fetchall()
            return str(found)

        connection.execute(table_ledger.SET_LOADING, PLACE)
        assert [reached("0/A"), reached("0/9"), reached("1/0")] == ["0/A", "0/A", "1/0"]
        connection.execute(table_ledger.SET_LOADING, PLACE)
        assert reached("0/3") == "0/3"
        connection.execute("UPDATE kainite_load_table SET state = 'live'")
        assert reached("1/0") == "0/3"
