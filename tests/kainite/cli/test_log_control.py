"""``kainite log pause``, ``resume``, ``hand-over`` and ``history``, as a person calls them."""

from __future__ import annotations

import json

import pytest

from kainite.log.state.summary import from_text
from support.log_cli import LogWorld
from support.waiting import until


@pytest.mark.timeout(300)
async def test_a_pause_is_seen_everywhere_until_it_ends_and_stands_in_the_history(log_world: LogWorld) -> None:
    code, output, _ = await log_world.kainite("log", "pause", "--why", "the target is migrated")
    assert (code, output) == (0, "applying is paused when the micro-batch that is under way has ended\n")

    def told() -> bool:
        head = log_world.store.read_head("0")
        summary = from_text(head.summary) if head else None
        return summary is not None and "the target is migrated" in summary.paused

    await until(told)
    _, output, _ = await log_world.kainite("log", "show", "--limit", "1")
    assert "the target is migrated: kainite log resume -p " in output
    code, _, errors = await log_world.kainite("log", "pause")
    assert (code, errors.startswith("kainite: applying is paused already, by ")) == (1, True)
    code, output, _ = await log_world.kainite("log", "resume")
    assert (code, output.startswith("applying goes on; it was paused by ")) == (0, True)

    _, output, _ = await log_world.kainite("log", "history", "--json")
    records = [json.loads(line) for line in output.splitlines()]
    assert [(one["what"], one["result"], one["why"]) for one in records] == [
        ("pause applying", "done", "the target is migrated"),
        ("pause applying", "refused", ""),
        ("resume applying", "done", ""),
    ]
    _, output, _ = await log_world.kainite("log", "history", "--since", "2999-01-01")
    assert output == "nobody has done anything that is recorded\n"


async def test_nothing_is_handed_over_unless_the_person_says_yes(log_world: LogWorld) -> None:
    code, output, _ = await log_world.kainite("log", "hand-over")
    assert code == 1
    assert "The log gets another owner. Go on?" in output
    assert log_world.store.read_requests("0") == []
