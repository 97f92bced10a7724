"""The page on which a failed unit's deltas are edited: what it offers, and what it refuses before anybody is asked."""

from __future__ import annotations

import json

import pytest

from kainite.console.actions import exact
from support.console_world import allow, served_console
from support.log_cli import LogWorld

DELTAS = json.dumps([{"table": "t", "op": "upsert", "key": {"id": 1}, "row": {"id": 1, "v": 2}}])


async def test_a_failed_unit_is_offered_with_a_name_that_nobody_has(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        page = (await console.ask("/app/correct?uow=bad")).text
        assert 'value="bad-corrected"' in page
        assert "&#34;table&#34;: &#34;t&#34;" in page
        assert "only a failed unit is corrected" in (await console.ask("/app/correct?uow=waiting")).text
        assert (await console.ask("/app/correct?uow=nothing")).status == 404


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"consoleOperators": "eve"}, "may look and not act"),
        ({"consoleOperators": "local", "consoleValues": "masked"}, "Values are not shown here"),
    ],
)
async def test_nothing_is_edited_by_who_may_not_act_or_see(
    log_world: LogWorld, settings: dict[str, str], told: str
) -> None:
    async with served_console(allow(log_world.properties, **settings)) as console:
        page = (await console.ask("/app/correct?uow=bad")).text
        assert (told in page, "<textarea" in page) == (True, False)


async def test_what_is_refused_stays_on_the_page(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        form = {"do": "correct", "uow": exact("bad"), "name": "n", "why": "a typo"}
        for deltas, told in (("[", "the deltas cannot be read"), (DELTAS, "catalogue is not known here")):
            answer = await console.send("/app/do", {**form, "deltas": deltas})
            assert (answer.status, told in answer.text, 'value="a typo"' in answer.text) == (409, True, True), deltas
        assert log_world.owner.state.operations.all() == []
