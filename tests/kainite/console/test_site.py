"""The paths of the console."""

from __future__ import annotations

from support.console_world import served_console
from support.log_cli import LogWorld


async def test_each_path_has_its_page_and_others_have_none(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        first = await console.ask("/")
        assert (first.status, first.headers["location"]) == (307, "/app/")
        assert (await console.ask("/app")).headers["location"] == "/app/"
        for path in ("", "units", "unit?uow=bad", "shards", "apply", "log", "history", "figures"):
            assert (await console.ask(f"/app/{path}")).status == 200, path
        assert (await console.ask("/other/")).status == 404
        assert (await console.ask("/app/nothing")).status == 404
