"""Follows a file of JSON lines that another process appends to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson


class JsonLinesFile:
    """A file's reader; each :meth:`read` yields the lines that were finished since the read before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yields new lines that are objects; skips all else, such as a line that a kill cut off."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole, _, _ = data.rpartition(b"\n")
        self._offset += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                yield value
