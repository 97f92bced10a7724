"""One unit's page and its copy as JSON."""

from __future__ import annotations

import json

from support.console_world import served_console
from support.log_cli import REFUSED, LogWorld


async def test_a_unit_stands_among_those_it_waits_for(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        unit = (await console.ask("/app/unit?id=2")).text
        assert "waits for 1 (bad)" in unit
        assert "this unit" in unit
        told = json.loads((await console.ask("/app/unit.json?uow=bad")).text)
        assert (told["status"], told["cause"], told["deltas"][0]["key"]) == ("failed", REFUSED, {"id": 1})
        assert [each["uow"] for each in told["behind"]] == ["waiting"]
        collecting = (await console.ask("/app/unit?uow=half")).text
        assert "not dispatched" in collecting
        missing = await console.ask("/app/unit?uow=nothing")
        assert (missing.status, "no unit &#39;nothing&#39; is in the log" in missing.text) == (404, True)
