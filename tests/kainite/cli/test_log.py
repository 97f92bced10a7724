"""``kainite log show`` and ``who``, as a person calls them."""

from __future__ import annotations

import psycopg
import pytest

from kainite.replicate import ledger, table_ledger
from support.log_cli import LogWorld


async def test_show_has_the_white_papers_columns(log_world: LogWorld) -> None:
    rows = await log_world.rows()
    assert [(row["id"], row["uow"], row["status"]) for row in rows] == [
        (0, "done", "committed"),
        (1, "bad", "failed"),
        (2, "waiting", "blocked"),
        (3, "fresh", "in progress"),
        (None, "half", "collecting"),
    ]
    assert [row["conflict"] for row in rows] == [None, 0, 1, None, None]
    assert (rows[0]["instance"], rows[0]["queue"], rows[0]["signature"]) == (1, ["shard-0"], ["t(1)"])
    assert (rows[4]["trans_in"], rows[4]["trans_out"], rows[4]["number"]) == (3, 2, 17)
    assert rows[1]["cause"] == 'violates check "positive" [23514]'
    assert rows[2]["cause"] == "waits for 1 (bad)"
    assert rows[0]["age_s"] is None
    assert all(0 <= row["age_s"] <= row["now_ms"] / 1000 for row in rows[1:])


async def test_show_prints_a_table(log_world: LogWorld) -> None:
    status, output, _ = await log_world.kainite("log", "show")
    assert status == 0
    for heading in (
        "Conflict",
        "ID",
        "UofW",
        "Queue ID",
        "ETL JI",
        "Signature",
        "Trans ID In",
        "Trans ID Out",
        "Status",
        "Age",
    ):
        assert heading in output
    assert "now: 20" in output
    assert "waits for 1 (bad)" in output
    assert 'violates check "positive" [23514]' in output
    assert "\x1b[" not in output, "colours only on a terminal"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--status", "failed", "--status", "blocked"], ["bad", "waiting"]),
        (["--uow", "fresh"], ["fresh"]),
        (["--table", "t", "--limit", "2"], ["fresh", "half"]),
        (["--table", "elsewhere"], []),
        (["--cause", "POSITIVE"], ["bad"]),
    ],
)
async def test_show_filters(log_world: LogWorld, options: list[str], expected: list[str]) -> None:
    assert [row["uow"] for row in await log_world.rows(*options)] == expected


async def test_show_tells_which_units_touch_a_table_that_is_not_live(log_world: LogWorld, postgres: str) -> None:
    with log_world.properties.open("a") as file:
        file.write(f"target = {postgres}\n")
    assert all(row["not_live"] == [] for row in await log_world.rows())
    place = f"{log_world.table}/0"
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO kainite_load (log_partition, generation, state) VALUES (%s, 1, 'live')", [place]
        )
        note = "INSERT INTO kainite_load_table VALUES (%s, 'public', %s, '0/17', %s)"
        for table, state in (("t", "catching up"), ("u", "failed")):
            connection.execute(note, (place, table, state))
    rows = await log_world.rows()
    assert {tuple(row["not_live"]) for row in rows} == {("public.t is not live: catching up, point 0/17",)}
    _, output, _ = await log_world.kainite("log", "show")
    assert "public.t is not live" in output


async def test_who_says_which_units_touch_a_row(log_world: LogWorld) -> None:
    status, output, errors = await log_world.kainite("log", "who", "t", "id=1", "--json")
    assert status == 0, errors
    assert output == ""  # the fragments of this log write plain numbers, not the signatures of rows
    status, output, _ = await log_world.kainite("log", "who", "t", "id=1")
    assert output == "no unit in progress touches this row\n"
    status, _, errors = await log_world.kainite("log", "who", "t", "id")
    assert (status, "'id' is not COLUMN=VALUE" in errors) == (2, True)
