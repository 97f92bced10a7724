"""What all pages share."""

from __future__ import annotations

from pathlib import Path

from support.console_world import allow, served_console
from support.log_cli import LogWorld


async def test_a_region_is_asked_for_alone(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        part = (await console.ask("/app/units", HX_Request="true")).text
        assert "<html" not in part
        assert 'hx-swap-oob="true"' in part
        assert "unit?id=1" in part


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
