"""Rows of a MariaDB by their keys: odd names."""

from __future__ import annotations

from kainite.targets.mariadb.connection import connect
from kainite.targets.present_row import RowAsked, read_target_rows


def test_odd_names_are_quoted(mariadb: str) -> None:
    connection = connect(mariadb)
    connection.query("CREATE TABLE `5% ``off``` (`i%d` int PRIMARY KEY, `a``b` varchar(9))")
    connection.query("INSERT INTO `5% ``off``` VALUES (1, 'x')")
    connection.close()
    assert read_target_rows(mariadb, [RowAsked("5% `off`", {"i%d": 1})]) == ({"i%d": "1", "a`b": "x"},)
