"""How a target's row is shown below a delta, and what each of several targets has of a unit."""

from __future__ import annotations

import json

import pytest

from kainite.cli.uow_target import RowsBeside, part_lines
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.target_parts import TargetPart
from support.log_cli import LogWorld


def test_a_row_is_one_line() -> None:
    beside = RowsBeside([{"id": "1", "v": None}, None])
    assert beside.line(0) == '    in the target: {"id":"1","v":null}'
    assert beside.line(1) == "    in the target: no such row"
    assert set(beside.as_json()) == {"target"}


def test_of_several_targets_each_row_says_whose_it_is() -> None:
    beside = RowsBeside([{"id": "1"}, None], ["shop", "crm"], {"crm": "it is away"})
    assert [beside.line(0), beside.line(1)] == [
        '    in target shop: {"id":"1"}', "    in target crm: not shown: it is away",
    ]  # fmt: skip
    assert (beside.as_json()["target_names"], beside.as_json()["target_problems"]) == (
        ["shop", "crm"], {"crm": "it is away"},
    )  # fmt: skip


def test_each_part_is_one_line() -> None:
    parts = {"a": TargetPart(("t",), UnitStatus.COMMITTED), "b": TargetPart((), UnitStatus.FAILED, "refused")}
    assert part_lines(parts) == ["in target a: committed", "in target b: failed: refused"]


async def test_one_part_is_retried_and_given_up(two_targets: LogWorld) -> None:
    status, output, errors = await two_targets.kainite("uow", "retry", "both", "--target", "crm", "--why", "mended")
    assert (status, output) == (0, "unit both will be applied again in crm\n"), errors
    status, _, errors = await two_targets.kainite("uow", "discard", "both", "--target", "crm", "--yes")
    assert status == 1
    assert "the part of unit both in crm is in progress, not failed" in errors
    [tid] = (unit.tid for unit in two_targets.owner.state.units.values() if unit.uow == "both")
    await two_targets.apply(Outcome(tid, UnitStatus.FAILED, 0, "again"), target="crm")
    status, output, errors = await two_targets.kainite("uow", "discard", "both", "--target", "crm", "--yes")
    assert output == "the part of unit both in crm is discarded; its other targets have theirs, or will\n", errors
    _, history, _ = await two_targets.kainite("log", "history", "--json")
    assert [json.loads(line)["about"] for line in history.splitlines()] == ["unit both in crm"] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("both", "--target", "erp"), "there is no target.erp"),
        (("--all", "--target", "crm"), "--target is about units that are named"),
    ],
)
async def test_which_part_must_be_named(two_targets: LogWorld, arguments: tuple[str, ...], said: str) -> None:
    status, _, errors = await two_targets.kainite("uow", "retry", *arguments)
    assert status != 0
    assert said in errors


async def test_the_command_tells_each_part_and_asks_each_target(two_targets: LogWorld) -> None:
    status, output, errors = await two_targets.kainite("uow", "show", "both", "--target")
    assert status == 0, errors
    lines = output.splitlines()
    assert "in target shop: committed" in lines
    assert any(line.startswith("in target crm: failed: violates") for line in lines)
    assert [line for line in lines if line.startswith("    in target shop: not shown: a sqlite target cannot be asked")]
    _, told, _ = await two_targets.kainite("uow", "show", "both", "--target", "--json")
    assert json.loads(told)["targets"]["crm"]["status"] == "failed"
    assert json.loads(told)["target_names"] == ["shop", "crm"]
