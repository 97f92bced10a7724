"""Loaders for ``target=exec:…``: the two of docs/targets.md, and the tests' own programs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
CHILDREN = Path(__file__).parents[1] / "children"


def documented_loader(folder: Path, database: Path) -> str:
    """Returns a target that loads into a SQLite database by the page's whole program, word for word."""
    return _documented(-1, folder, database)


def least_loader(folder: Path, book: Path) -> str:
    """Returns a target that writes into a file by the page's first program."""
    return _documented(0, folder, book)


def _documented(which: int, folder: Path, argument: Path) -> str:
    programs = re.findall(r"^```python\n(.+?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    path = folder / "loader.py"
    path.write_text(programs[which])
    return loader(str(path), str(argument))


def loader(*words: str) -> str:
    """Returns a target that runs a Python program."""
    return "exec:" + shlex.join([sys.executable, *words])
