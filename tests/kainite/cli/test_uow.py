"""``kainite uow show``, ``retry`` and ``discard``, as a person calls them."""

from __future__ import annotations

import json

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.targets.postgresql.connection import connect
from kainite.uow.delta import Delta, Operation
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched
from support.log_builders import fragment
from support.log_cli import REFUSED, LogWorld


async def more_units(log_world: LogWorld) -> None:
    """Adds two failed units, and two that wait behind ``waiting``: ids 6 to 9."""
    units = [fragment(uow, [key], count=1) for key, uow in enumerate(("bad2", "bad3", "behind", "last"), 20)]
    await log_world.owner.append("shard-2", Position(1), Position(1), units)
    ids = {unit.uow: tid for tid, unit in log_world.owner.state.units.items()}
    await log_world.apply(
        Outcome(ids["bad2"], UnitStatus.FAILED, 0, "no parent [23503]"),
        Outcome(ids["bad3"], UnitStatus.FAILED, 0, "no parent [23503]"),
        Outcome(ids["behind"], UnitStatus.BLOCKED, None, f"waits for {ids['waiting']}"),
        Outcome(ids["last"], UnitStatus.BLOCKED, None, f"waits for {ids['behind']}"),
    )


async def test_retry(log_world: LogWorld) -> None:
    status, output, _ = await log_world.kainite("uow", "retry", "bad")
    assert (status, output) == (0, "unit bad will be applied again\n")
    assert [row["status"] for row in await log_world.rows("--uow", "bad")] == ["in progress"]
    status, _, errors = await log_world.kainite("uow", "retry", "bad")
    assert (status, errors) == (1, "kainite: unit bad is in progress, not failed\n")


async def test_discard(log_world: LogWorld) -> None:
    status, _, errors = await log_world.kainite("uow", "retry", "waiting")
    waits = f"it waits for unit bad (id 1), which is failed ({REFUSED}) and holds back 1 unit; resolve that one"
    assert (status, errors) == (1, f"kainite: unit waiting is blocked, not failed: {waits}\n")
    status, output, _ = await log_world.kainite("uow", "discard", "bad", "--yes")
    assert (status, output) == (0, "unit bad is discarded\n")


async def test_without_a_log_table_the_name_and_what_makes_it_are_told(log_world: LogWorld) -> None:
    log_world.properties.write_text(log_world.properties.read_text().replace(log_world.table, "no-such-log"))

    for arguments in (("log", "show"), ("uow", "retry", "bad")):
        status, _, errors = await log_world.kainite(*arguments)

        assert status == 1
        assert errors.startswith("kainite: there is no log table 'no-such-log': ")
        assert "unitsOfWork" in errors


async def test_units_are_retried_by_name_and_by_id(log_world: LogWorld) -> None:
    await more_units(log_world)
    status, output, errors = await log_world.kainite("uow", "retry", "1", "bad3", "waiting", "nobody")
    assert (status, output.splitlines()) == (
        1,
        ["unit bad will be applied again", "unit bad3 will be applied again", "2 of 4 units: retry; 2 refused"],
    )
    assert [line.partition(",")[0] for line in errors.splitlines()] == [
        "refused: unit waiting is blocked",
        "refused: no unit 'nobody' is failed or in progress; see kainite log show",
    ]


@pytest.mark.parametrize(
    ("options", "retried"),
    [
        (["--all"], ["bad", "bad2", "bad3"]),
        (["--status", "failed", "--cause", "no parent"], ["bad2", "bad3"]),
        (["--table", "elsewhere"], []),
    ],
)
async def test_failed_units_are_selected_and_retried_in_the_logs_order(
    log_world: LogWorld, options: list[str], retried: list[str]
) -> None:
    await more_units(log_world)
    status, output, errors = await log_world.kainite("uow", "retry", *options)
    assert (status, errors) == (0, "")
    first, *others = output.splitlines()
    assert first == f"{len(retried)} of 3 failed units" + (f": {', '.join(retried)}" if retried else "")
    assert others == ([f"{len(retried)} units will be applied again"] if retried else [])
    shown = await log_world.rows()
    assert [row["uow"] for row in shown if (row["cause"] or "").startswith("retried by")] == retried


async def test_nothing_is_resolved_that_was_not_asked_for(log_world: LogWorld) -> None:
    for action in ("retry", "discard"):
        status, _, errors = await log_world.kainite("uow", action)
        assert status == 2
        assert "name units, or select them" in errors


async def test_discarding_several_asks_first_and_says_how_many(log_world: LogWorld) -> None:
    await more_units(log_world)
    status, output, errors = await log_world.kainite("uow", "discard", "--all")
    assert status == 1
    assert "3 of 3 failed units: bad, bad2, bad3" in output
    lost = "3 units will never be applied to the target: 3 changes that the target will never have"
    assert f"{lost}. The 3 that wait for them go on without. Discard them?" in output + errors
    assert [row["status"] for row in await log_world.rows("--uow", "bad")] == ["failed"]


async def test_a_unit_is_shown_with_its_deltas_and_what_it_waits_for(log_world: LogWorld) -> None:
    await more_units(log_world)
    status, output, _ = await log_world.kainite("uow", "show", "behind")
    assert status == 0
    ids = {row["uow"]: row["id"] for row in await log_world.rows()}
    assert output.splitlines() == [
        f"unit behind (id {ids['behind']}): blocked",
        "cause: waits for 2 (waiting)",
        "waits for: waiting (id 2), blocked",
        "waits for: bad (id 1), failed",
        f"root: bad (id 1), failed: {REFUSED}",
        "units that wait behind it: 1: last",
        "deltas: 1 of 1, through shard-2",
        '  upsert t key {"id":22} row {"id":22,"v":22}',
    ]


async def test_a_unit_is_shown_beside_what_the_target_has_now(log_world: LogWorld, postgres: str) -> None:
    await more_units(log_world)
    status, _, errors = await log_world.kainite("uow", "show", "behind", "--target")
    assert (status, errors) == (1, "kainite: there is no target to ask: set target\n")
    with connect(postgres, "test") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        with log_world.properties.open("a") as file:
            file.write(f"\ntarget = {postgres}\n")
        _, output, _ = await log_world.kainite("uow", "show", "behind", "--target")
        assert output.splitlines()[-1] == "    in the target: no such row"
        connection.execute("INSERT INTO t VALUES (22, NULL)")
    _, output, _ = await log_world.kainite("uow", "show", "behind", "--target")
    assert output.splitlines()[-2:] == [
        '  upsert t key {"id":22} row {"id":22,"v":22}',
        '    in the target: {"id":"22","v":null}',
    ]
    _, as_json, _ = await log_world.kainite("uow", "show", "behind", "--target", "--json")
    assert json.loads(as_json)["target"] == [{"id": "22", "v": None}]


async def test_a_unit_is_shown_as_json_by_its_id(log_world: LogWorld) -> None:
    await more_units(log_world)
    status, output, _ = await log_world.kainite("uow", "show", "1", "--json")
    assert status == 0
    found = json.loads(output)
    assert (found["uow"], found["before"], [delta["key"] for delta in found["deltas"]]) == ("bad", [], [{"id": 1}])
    assert [row["uow"] for row in found["behind"]] == ["waiting", "behind", "last"]


async def test_the_values_of_rows_are_shown_whatever_their_columns_are_called_and_known_secrets_are_not(
    log_world: LogWorld,
) -> None:
    row = {"id": 30, "token": "t-17", "password": "of a customer", "note": "geheim-of-db"}
    change = Delta("t", Operation.UPSERT, {"id": 30}, row, {})
    ends = fragment("secrets", count=1).ends
    unit = Fragment("secrets", (change,), Touched(frozenset({30})), ends)
    await log_world.owner.append("shard-2", Position(1), Position(1), [unit])
    log_world.properties.write_text(
        log_world.properties.read_text() + "target = postgresql://user:geheim-of-db@127.0.0.1:1/d\n"
    )
    _, output, _ = await log_world.kainite("uow", "show", "secrets")
    assert '"token":"t-17","password":"of a customer","note":"***"' in output
    _, output, _ = await log_world.kainite("uow", "show", "secrets", "--json")
    assert json.loads(output)["deltas"][0]["row"] == row | {"note": "***"}


async def test_a_unit_that_is_being_collected_shows_what_has_come(log_world: LogWorld) -> None:
    _, output, _ = await log_world.kainite("uow", "show", "half")
    assert output.splitlines()[0] == "unit half (not dispatched): collecting"
    assert "deltas: 2 of 3, through shard-1" in output


async def test_a_unit_that_is_not_there_cannot_be_shown(log_world: LogWorld) -> None:
    status, _, errors = await log_world.kainite("uow", "show", "nobody")
    assert status == 1
    assert errors.startswith("kainite: no unit 'nobody' is in the log")


async def test_a_correction_is_read_from_what_show_prints_and_judged_by_the_owner(log_world: LogWorld) -> None:
    file = log_world.properties.with_name("fixed.json")
    file.write_text('{"deltas": [{"table": "t", "op": "upsert", "key": {"id": 1}, "row": {"id": 1, "v": 1.10}}]}')
    words = ("uow", "correct", "bad", "--as", "bad-fixed", "--deltas", str(file), "--yes")
    status, _, errors = await log_world.kainite(*words)
    assert (status, errors) == (1, "kainite: the target's catalogue is not known here\n")
    file.write_text('{"deltas": 7}')
    status, _, errors = await log_world.kainite(*words)
    assert status == 2
    assert "it has no array of deltas" in errors
