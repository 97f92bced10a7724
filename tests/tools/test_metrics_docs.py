"""The table of metrics in the docs is the one in the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "metrics_docs.py"


def test_the_tables_are_not_stale() -> None:
    spec = importlib.util.spec_from_file_location("metrics_docs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")

    assert page.count(tool.BEGIN) == page.count(tool.BEGIN_ALERTS) == 1
    assert page.count(tool.END) == 2
    assert page == tool.render(page), "run `make docs`"
