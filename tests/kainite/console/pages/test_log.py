"""The pages of the log with the settings, and of the history."""

from __future__ import annotations

from support.console_world import allow, served_console
from support.log_cli import LogWorld


async def test_owner_marks_and_settings_are_shown(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="eve")) as console:
        page = (await console.ask("/app/log")).text
        assert log_world.table in page
        assert "consoleOperators" in page
        assert "Hand the log over" not in page
        assert "no request waits for the owner" in page
        assert "Nobody did anything" in (await console.ask("/app/history")).text
