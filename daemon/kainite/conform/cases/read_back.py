"""The rows that a loader must have after ``load`` requests, and the question for them (docs/targets.md). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kainite.uow import exact_json

Row = Mapping[str, Any]

_WRITTEN: Final = ("insert", "upsert")


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A row that was loaded whole: its table, its key and all columns that were written."""

    table: str
    key: Row
    row: Row


def loaded_rows(requests: Iterable[bytes]) -> Iterator[LoadedRow]:
    """Yields each row as the requests leave it, without rows that were changed only and never written whole.

    What is no ``load`` request, or has no key, is left out.
    """
    rows: dict[tuple[str, str], LoadedRow] = {}
    for delta in (delta for request in requests for delta in _deltas(request)):
        table, key, op = delta.get("table"), delta.get("key"), delta.get("op")
        if not isinstance(table, str) or not isinstance(key, dict) or not key:
            continue
        place = (table, json.dumps(key, sort_keys=True, default=str))
        before = rows.pop(place, None)
        written = {**key, **(delta.get("row") or {})}
        if op in _WRITTEN:
            rows[place] = LoadedRow(table, key, written)
        elif op == "update" and before is not None:
            rows[place] = LoadedRow(table, key, {**before.row, **written})
    yield from rows.values()


def _deltas(request: bytes) -> list[dict[str, Any]]:
    try:
        asked = exact_json.loads(request)
    except ValueError:
        return []
    if not isinstance(asked, dict) or asked.get("action") != "load" or not isinstance(asked.get("deltas"), list):
        return []
    return [delta for delta in asked["deltas"] if isinstance(delta, dict)]


def question(table: str, rows: Iterable[LoadedRow]) -> bytes:
    """Returns the request for the rows of one table."""
    asked = {"action": "rows", "table": table, "keys": [dict(row.key) for row in rows]}
    return json.dumps(asked, separators=(",", ":"), default=str).encode()
