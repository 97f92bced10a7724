"""Rows that the target has under deltas' keys: on each kind that can be asked, and kinds that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kainite.base.errors import SettingsError, TargetUnavailableError
from kainite.targets import present_row
from kainite.targets.mariadb.connection import connect as connect_to_mariadb
from kainite.targets.postgresql.connection import connect as connect_to_postgresql
from kainite.targets.present_row import PresentRow, RowAsked, names_of, read_target_rows, rows_beside, rows_of_deltas

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
    found = read_target_rows(
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


@pytest.mark.parametrize("target", ["postgresql://u:geheim@127.0.0.1:1/d", "mariadb://u:geheim@127.0.0.1:1/d"])
def test_a_server_that_does_not_answer_is_told_without_its_secret(target: str) -> None:
    with pytest.raises(TargetUnavailableError) as told:
        read_target_rows(target, [RowAsked("t", {"id": 1})])
    assert "geheim" not in str(told.value)


def test_a_kind_that_cannot_be_asked_says_so() -> None:
    with pytest.raises(SettingsError, match="a sqlite target cannot be asked for rows"):
        read_target_rows("sqlite:///x.db", [])


def test_which_rows_deltas_name() -> None:
    deltas = [{"table": "t", "key": {"id": 1}}, {"table": "t", "row": {"id": 1}}, {"table": "t", "key": {}}, {}]
    assert rows_of_deltas(deltas) == [RowAsked("t", {"id": 1}), None, None, None]
    assert names_of("a.b.c") == [("a.b.c",), ("a", "b.c"), ("a.b", "c")]
    assert names_of(".t.") == [(".t.",)]


def test_deltas_without_a_key_are_not_asked_for_and_keep_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(_: str, asked: Sequence[RowAsked]) -> tuple[PresentRow | None, ...]:
        return tuple({"id": str(one.key["id"])} for one in asked)

    monkeypatch.setattr(present_row, "read_target_rows", found)
    deltas = [{"table": "t", "row": {"id": 1}}, {"table": "t", "key": {"id": 2}}]
    assert rows_beside("postgresql://u@127.0.0.1/d", deltas) == [None, {"id": "2"}]
    with pytest.raises(SettingsError, match="set target"):
        rows_beside(None, deltas)
