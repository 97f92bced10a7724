#!/usr/bin/env python3
"""Turns the change records of ``kainite-extract-postgresql`` into deltas, with Amazon's library (amazon_kclpy)."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from kainite.processors.frame import Emitted, Json, Record, refused, run


def deltas_of(record: Record) -> list[Emitted]:
    """Returns the delta, or the end of a unit, of a change record.

    Raises:
        ValueError: it is no JSON.
        KeyError: it is no change record.
    """
    change = orjson.loads(record.data)
    if change.get("end"):
        end = {name: change[name] for name in ("uow", "end", "count", "number")}
        return [end | {name: change[name] for name in ("time",) if name in change}]
    if "refused" in change:
        cause = f"a change ({change['operation']}) of {change['relation']} that cannot be carried: {change['refused']}"
        return [refused(change["uow"], cause, record)]
    key, new = _typed(change["key"], change["types"]), _typed(change["new"], change["types"])
    old = _typed(change.get("old", {}), change["types"])
    delta = {"uow": change["uow"], "table": change["relation"], "op": change["operation"], "ordinal": change["ordinal"]}
    if key:
        delta["key"] = key
    if row := _row(change["operation"], key, new):
        delta["row"] = row
    if old:
        delta["before"] = old
    return [delta]


def _row(operation: str, key: dict[str, Json], new: dict[str, Json]) -> dict[str, Json]:
    """Drops the key columns whose values an update keeps, unless there is nothing else to write."""
    if operation != "update":
        return new
    return {name: value for name, value in new.items() if name not in key or key[name] != value} or new


def _typed(values: dict[str, str | None], types: dict[str, int]) -> dict[str, Json]:
    """Returns PostgreSQL's texts as JSON. Other types stay text, which every target takes for a value of any type.

    Raises:
        ValueError: one is not PostgreSQL's text.
    """
    return {
        name: text if text is None or (convert := _CONVERSIONS.get(types[name])) is None else convert(text)
        for name, text in values.items()
    }


# OIDs of pg_type: bool, int8, int2, int4, oid.
_CONVERSIONS: dict[int, Callable[[str], Json]] = {
    16: "t".__eq__,
    20: int,
    21: int,
    23: int,
    26: int,
}


if __name__ == "__main__":
    run(deltas_of)
