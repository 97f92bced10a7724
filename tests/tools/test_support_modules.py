"""The tables of ``tests/README.md`` tell what each support module is for, and no other."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| ((?:`\w+\.py`(?:, )?)+) \|", re.MULTILINE)


def test_the_tables_name_each_support_module_once() -> None:
    rows = ROW.findall((TESTS / "README.md").read_text(encoding="utf-8"))
    named = [name for row in rows for name in re.findall(r"\w+\.py", row)]

    assert sorted(named) == sorted(path.name for path in (TESTS / "support").glob("*.py") if path.stem != "__init__")
