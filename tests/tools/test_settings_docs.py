"""The generated page of settings is the one that is committed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "settings_docs.py"


def test_the_page_is_not_stale() -> None:
    spec = importlib.util.spec_from_file_location("settings_docs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(), "run `make docs`"
