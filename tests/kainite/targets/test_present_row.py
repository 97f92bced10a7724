"""Rows that the target has under deltas' keys: on each kind that can be asked, and kinds that cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.base.errors import SettingsError, TargetUnavailableError
from kainite.targets.mariadb.connection import connect as connect_to_mariadb
from kainite.targets.postgresql.connection import connect as connect_to_postgresql
from kainite.targets.present_row import RowAsked, names_of, read_present_rows, rows_of_deltas

Run = Callable[[str], None]


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> tuple[str, Run]:
    """Gives a target's address, and what runs a statement there."""
    url: str = request.getfixturevalue("postgres" if request.param == "postgresql" else "mariadb")

    def run(statement: str) -> None:
        if request.param == "postgresql":
            with connect_to_postgresql(url, "test") as connection:
                connection.execute(statement)
            return
        opened = connect_to_mariadb(url)
        opened.query(statement)
        opened.close()

    return url, run


def test_a_row_is_found_by_its_key_as_texts_in_the_tables_order(database: tuple[str, Run]) -> None:
    url, run = database
    run("CREATE TABLE item (z int, id int, part varchar(9), v numeric(12,3), w varchar(99), PRIMARY KEY (id, part))")
    run("INSERT INTO item VALUES (7, 1, 'a', 12.5, NULL), (8, 1, 'b', 0, 'it''s %s')")
    found = read_present_rows(
        url,
        [
            RowAsked("item", {"id": 1, "part": "b"}),
            RowAsked("item", {"id": "1", "part": "a"}),
            RowAsked("item", {"id": 2, "part": "a"}),
            RowAsked("item", {"id": 1}),
            RowAsked("item", {"nothing": 1}),
            RowAsked("nothing", {"id": 1}),
            RowAsked("nothing.at.all", {"id": 1}),
            RowAsked("item", {"w": None}),
        ],
    )
    first = {"z": "8", "id": "1", "part": "b", "v": "0.000", "w": "it's %s"}
    second = {"z": "7", "id": "1", "part": "a", "v": "12.500", "w": None}
    assert found == (first, second, None, None, None, None, None, second)
    assert [list(row) for row in found[:2] if row] == [["z", "id", "part", "v", "w"]] * 2


def test_a_value_that_its_column_cannot_take_spoils_no_other_look(postgres: str) -> None:
    with connect_to_postgresql(postgres, "test") as connection:
        connection.execute('CREATE SCHEMA "od.d"')
        connection.execute('CREATE TABLE "od.d"."t.x" (id int PRIMARY KEY, doc jsonb)')
        connection.execute("""INSERT INTO "od.d"."t.x" VALUES (1, '{"a": 1.50}')""")
    wanted: list[dict[str, Any]] = [{"id": "no number"}, {"id": 1}]
    found = read_present_rows(postgres, [RowAsked("od.d.t.x", key) for key in wanted])
    assert found == (None, {"id": "1", "doc": '{"a": 1.50}'})


@pytest.mark.parametrize("target", ["postgresql://u:geheim@127.0.0.1:1/d", "mariadb://u:geheim@127.0.0.1:1/d"])
def test_a_server_that_does_not_answer_is_told_without_its_secret(target: str) -> None:
    with pytest.raises(TargetUnavailableError) as told:
        read_present_rows(target, [RowAsked("t", {"id": 1})])
    assert "geheim" not in str(told.value)


def test_a_kind_that_cannot_be_asked_says_so() -> None:
    with pytest.raises(SettingsError, match="a sqlite target cannot be asked for rows"):
        read_present_rows("sqlite:///x.db", [])


def test_which_rows_deltas_name() -> None:
    deltas = [{"table": "t", "key": {"id": 1}}, {"table": "t", "row": {"id": 1}}, {"table": "t", "key": {}}, {}]
    assert rows_of_deltas(deltas) == [RowAsked("t", {"id": 1}), None, None, None]
    assert names_of("a.b.c") == [("a.b.c",), ("a", "b.c"), ("a.b", "c")]
    assert names_of(".t.") == [(".t.",)]
