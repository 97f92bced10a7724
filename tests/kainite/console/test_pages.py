"""The console's pages, over HTTP, on a log with units of every status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kainite.console.pages import filter_of
from kainite.log.state.unit_filter import UnitFilter
from support.console_world import allow, served_console
from support.log_cli import REFUSED, LogWorld


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, UnitFilter()),
        ({"status": "failed", "table": " t "}, UnitFilter(("failed",), ("t",))),
        ({"status": "<script>"}, UnitFilter()),
        ({"name": "T-1"}, UnitFilter(names=("*T-1*",))),
        ({"name": "T-*[1]"}, UnitFilter(names=("T-*[[]1]",))),
        ({"since": "1970-01-01T00:00:01", "until": "soon"}, UnitFilter(since_ms=1000)),
        ({"until": "1970-01-01T01:00:01+01:00", "cause": "23503"}, UnitFilter(causes=("23503",), until_ms=1000)),
    ],
)
def test_a_query_is_a_filter(query: dict[str, str], wanted: UnitFilter) -> None:
    assert filter_of(query) == wanted


async def test_each_page_shows_what_the_commands_show(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        first = await console.ask("/")
        assert (first.status, first.headers["location"]) == (307, "/app/")
        assert (await console.ask("/app")).headers["location"] == "/app/"
        overview = (await console.ask("/app/")).text
        assert "1 unit failed; the first is bad (id 1)" in overview
        assert "The way of the data" in overview
        units = (await console.ask("/app/units")).text
        assert all(f'href="/app/unit?id={tid}"' in units for tid in range(4))
        assert 'href="/app/unit?uow=half"' in units
        failed = (await console.ask("/app/units?status=failed")).text
        assert ("unit?id=1" in failed, "unit?id=0" in failed) == (True, False)
        unit = (await console.ask("/app/unit?id=2")).text
        assert "waits for 1 (bad)" in unit
        assert "this unit" in unit
        told = json.loads((await console.ask("/app/unit.json?uow=bad")).text)
        assert (told["status"], told["cause"], told["deltas"][0]["key"]) == ("failed", REFUSED, {"id": 1})
        assert [each["uow"] for each in told["behind"]] == ["waiting"]
        assert "no unit &#39;nothing&#39; is in the log" in (await console.ask("/app/unit?uow=nothing")).text
        assert "owned by" not in (await console.ask("/app/shards")).text
        assert "Units that stand still" in (await console.ask("/app/apply")).text
        settings = (await console.ask("/app/log")).text
        assert log_world.table in settings
        assert "consoleOperators" in settings
        figures = json.loads((await console.ask("/app/figures.json")).text)
        assert len(figures["at"]) == len(figures["rate"]) == 360
        assert (await console.ask("/other/")).status == 404


async def test_a_region_is_asked_for_alone(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        part = (await console.ask("/app/units", HX_Request="true")).text
        assert "<html" not in part
        assert 'hx-swap-oob="true"' in part
        assert "unit?id=1" in part


async def test_a_discard_is_asked_about_confirmed_and_recorded(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        form = {"do": "discard", "filter": UnitFilter(("failed",), causes=("23514",)).as_text()}
        asked = await console.send("/app/do", form)
        assert "1 unit will never be applied to the target" in asked.text
        assert 'name="sure" value="1"' in asked.text
        assert log_world.owner.state.units[1].status.value == "failed"
        done = await console.send("/app/do", {**form, "sure": "1", "why": "sent <again>"})
        assert (done.status, "Done." in done.text) == (200, True)
        assert 1 not in log_world.owner.state.units
        again = await console.send("/app/do", {"do": "retry", "uow": "bad", "sure": "1"})
        assert (again.status, "Refused." in again.text) == (409, True)
        history = (await console.ask("/app/history")).text
        assert "sent &lt;again&gt;" in history
        assert "local" in history


async def test_a_path_before_all_and_several_applications(log_world: LogWorld, tmp_path: Path) -> None:
    other = tmp_path / "other.properties"
    other.write_text(log_world.properties.read_text().replace("= app\n", "= other\n"))
    async with served_console(allow(log_world.properties, consolePathPrefix="/kainite"), other) as console:
        assert console.url.endswith("/kainite/")
        for path in ("/kainite", "/kainite/", "/"):
            both = await console.ask(path)
            assert both.status == 200
            assert all(f'href="/kainite/{name}/"' in both.text for name in ("app", "other"))
        assert (await console.ask("/kainite/app")).headers["location"] == "/kainite/app/"
        assert (await console.ask("/app/")).status == 200, "a proxy may cut the prefix off"
        assert 'href="/kainite/static/' in (await console.ask("/kainite/other/units")).text
