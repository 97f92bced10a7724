"""Loaders for ``target=exec:…``: the one that docs/targets.md shows, and how to call a program of the tests."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
CHILDREN = Path(__file__).parents[1] / "children"


def documented_loader(folder: Path, database: Path) -> str:
    """A target that loads into a SQLite database by the program on the page, word for word."""
    found = re.search(r"^```python\n(.+?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, "docs/targets.md shows no loader"
    program = folder / "loader.py"
    program.write_text(found[1])
    return loader(str(program), str(database))


def loader(*words: str) -> str:
    """A target that runs a Python program."""
    return "exec:" + shlex.join([sys.executable, *words])
