"""Puts tests that may take long before all others: a hook of pytest for ``conftest.py``.

Test processes take the next test from one list. If a test of minutes stood at its end, one process would run it while
the others have nothing left to do. Whoever gives a test a longer limit (``pytest.mark.timeout``) says that it may take
long.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    common = float(config.getini("timeout"))
    items.sort(key=lambda item: -max(limit_s(item), common))


def limit_s(item: pytest.Item) -> float:
    """Returns the seconds that a test's own limit allows it, or 0 if it has none."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else 0.0
