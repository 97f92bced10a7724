"""Tables of PostgreSQL and MariaDB are compared by value, whatever each driver makes of a value."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from kainite.base.errors import DemoError
from kainite.targets.mariadb.connection import connect
from kainite_demo.mixed_compare import compare_alike

ROWS = "INSERT INTO item VALUES (1, 'a', '2026-01-02 03:04:05'), (2, NULL, '2026-01-02 03:04:05.000006')"


@pytest.fixture
def ends(postgres: str, mariadb: str) -> tuple[str, str]:
    """Gives a database of each kind with the same table and rows."""
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, name char(3), at timestamp(6))")
        connection.execute(ROWS)
    with closing(connect(mariadb)) as connected:
        connected.query("CREATE TABLE item (id int PRIMARY KEY, name char(3), at datetime(6))")
        connected.query(ROWS)
    return postgres, mariadb


def test_equal_rows_are_counted(ends: tuple[str, str]) -> None:
    assert compare_alike(*ends, "item") == 2
    assert compare_alike(ends[1], ends[0], "item") == 2


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("UPDATE item SET name = '' WHERE id = 2", "item differs: .* the target .*''"),
        ("UPDATE item SET at = '2026-01-02 03:04:05.000007' WHERE id = 2", "the target .*000007"),
        ("DELETE FROM item WHERE id = 2", "the target no more rows"),
        ("INSERT INTO item VALUES (3, NULL, NULL)", "the source has no more rows"),
    ],
)
def test_a_difference_is_shown(ends: tuple[str, str], sql: str, shown: str) -> None:
    with closing(connect(ends[1])) as connection:
        connection.query(sql)
    with pytest.raises(DemoError, match=shown):
        compare_alike(*ends, "item")
