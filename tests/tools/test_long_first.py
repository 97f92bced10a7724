"""Tests that may take long stand before all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from support.long_first import pytest_collection_modifyitems


@dataclass(frozen=True)
class _Item:
    """A test that was collected, with the limit of its mark."""

    name: str
    limit: float | None = None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return None if self.limit is None else pytest.Mark(name, (self.limit,), {}, _ispytest=True)


def test_the_longest_limits_come_first_and_all_others_stay_in_their_order(request: pytest.FixtureRequest) -> None:
    assert float(request.config.getini("timeout")) == 120.0
    items: list[Any] = [_Item("a"), _Item("b", 20), _Item("c", 300), _Item("d"), _Item("e", 7200), _Item("f", 300)]

    pytest_collection_modifyitems(request.config, items)

    assert [item.name for item in items] == ["e", "c", "f", "a", "b", "d"]
