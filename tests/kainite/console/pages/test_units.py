"""The list of units: what its query selects."""

from __future__ import annotations

import pytest

from kainite.console.pages.units import filter_of
from kainite.log.state.unit_filter import UnitFilter
from support.console_world import served_console
from support.log_cli import LogWorld


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


async def test_pages_and_counts_follow_the_filter(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        units = (await console.ask("/app/units")).text
        assert all(f'href="/app/unit?id={tid}"' in units for tid in range(4))
        assert 'href="/app/unit?uow=half"' in units
        failed = (await console.ask("/app/units?status=failed")).text
        assert ("unit?id=1" in failed, "unit?id=0" in failed) == (True, False)
        assert "No unit fits" in (await console.ask("/app/units?page=2")).text
        assert "The unit with the id 2 is" in (await console.ask("/app/units?name=2")).text
