"""Forms over HTTP: what is asked first, what is carried out, what is refused."""

from __future__ import annotations

from kainite.log.state.unit_filter import UnitFilter
from support.console_world import allow, served_console
from support.log_cli import LogWorld


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
