"""MariaDB gets pgbench's tables with their keys, and as many rows as pgbench makes."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.reflection import reflect
from kainite_demo import pgbench
from kainite_demo.mariadb_tables import create_tables, fill, make_database
from kainite_demo.reading import count_of
from support.mariadb_server import drop_database
from support.names import unique


@pytest.mark.parametrize("has_key", [True, False])
def test_tables_have_pgbenchs_keys(mariadb: str, has_key: bool) -> None:
    create_tables(mariadb, history_has_key=has_key)
    found = reflect(mariadb).tables
    assert set(found) == set(pgbench.TABLES)
    assert found["pgbench_accounts"].primary_key == ("aid",)
    assert found["pgbench_history"].primary_key == (("hid",) if has_key else ())
    assert len(found["pgbench_history"].foreign_keys) == 3


def test_a_database_is_made_empty_and_filled_by_scale(mariadb_server: str) -> None:
    name = unique("made").replace("-", "_")
    url = make_database(mariadb_server, name)
    try:
        create_tables(url, history_has_key=True)
        fill(url, 2)
        counts = {table: count_of(url, table) for table in pgbench.TABLES}
    finally:
        drop_database(mariadb_server, name)
    assert counts == {"pgbench_branches": 2, "pgbench_tellers": 20, "pgbench_accounts": 200_000, "pgbench_history": 0}
