"""One unit of work as its page shows it: its timeline, its deltas with old and new values. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from kainite.log.views.unit_table import LogRow
from kainite.observe.check import spoken
from kainite.settings import RowDisplay

MOST_CHARACTERS: Final = 400
"""Of a longer value, only its beginning is shown on the page; the copy as JSON has all."""

MASK: Final = "•••"

_SIDES: Final = ("key", "row", "before")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in a unit's life.

    Attributes:
        name: what happened.
        at_ms: when, milliseconds since the epoch; None where nothing tells.
        after: how long after the moment before, for people; empty where that is not known.
        done: whether it has happened, as far as is known.
    """

    name: str
    at_ms: int | None
    after: str
    done: bool


@dataclass(frozen=True, slots=True)
class ValueView:
    """A value of a column.

    Attributes:
        text: as the page shows it.
        characters: how many characters it has; more than the text's where it is shortened.
        kind: its kind in JSON, for colours: text, number, boolean, null, structure; ``mask`` where it is masked.
    """

    text: str
    characters: int
    kind: str

    @property
    def is_cut(self) -> bool:
        return self.characters > MOST_CHARACTERS


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A column of a delta, with its value before and after; None where the delta does not tell."""

    name: str
    old: ValueView | None
    new: ValueView | None
    is_key: bool
    is_changed: bool


@dataclass(frozen=True, slots=True)
class DeltaView:
    """A delta: what it does to which table, and its columns; no columns where values are not shown at all."""

    ordinal: int | None
    operation: str
    table: str
    columns: tuple[ColumnView, ...]


def timeline(row: LogRow) -> tuple[Moment, ...]:
    """Returns the moments of a unit, in their order."""
    names = (
        ("committed at the source", row.source_ms),
        ("arrived on the stream", row.arrived_ms),
        ("collected", row.collected_ms),
        ("dispatched", row.dispatched_ms),
        ("applied", row.applied_ms),
    )
    shown: list[Moment] = []
    before: int | None = None
    last = max((place for place, (_, at_ms) in enumerate(names) if at_ms is not None), default=-1)
    for place, (name, at_ms) in enumerate(names):
        after = "" if before is None or at_ms is None else spoken_exactly((at_ms - before) / 1000)
        shown.append(Moment(name, at_ms, after, place <= last))
        before = at_ms if at_ms is not None else before
    return tuple(shown)


def spoken_exactly(seconds: float) -> str:
    """Returns a length of time for people, below a second in milliseconds; negative where two clocks differ."""
    return f"{seconds * 1000:,.0f} ms" if abs(seconds) < 1 else spoken(seconds)


def delta_views(deltas: Sequence[Mapping[str, Any]], display: RowDisplay) -> list[DeltaView]:
    """Returns deltas as the page shows them.

    Args:
        deltas: as the log has them.
        display: what of their values may be shown.
    """
    return [_delta(delta, display) for delta in deltas]


def changed_deltas(before: Sequence[Mapping[str, Any]], after: Sequence[Any]) -> list[DeltaView]:
    """Returns the deltas of a correction beside those of the unit that it replaces, in full, one by one.

    Columns have the unit's value as the old one and the correction's as the new one; a delta that one of the two lacks
    has no value there.

    Args:
        before: the unit's deltas.
        after: the correction's; what is no object is shown as it is.
    """
    views = []
    for old, new in zip_longest(before, after, fillvalue=None):
        mine, theirs = _flat(new), _flat(old)
        columns = tuple(
            ColumnView(
                name, _value(theirs.get(name, _NOTHING), RowDisplay.FULL),
                _value(mine.get(name, _NOTHING), RowDisplay.FULL), name.startswith("key "),
                mine.get(name, _NOTHING) != theirs.get(name, _NOTHING),
            )
            for name in dict.fromkeys((*mine, *theirs))
            if name.startswith(_SIDES) or mine.get(name) != theirs.get(name)
        )  # fmt: skip
        shown = _mapping(new if new is not None else old)
        word = "left out" if new is None else str(shown.get("op"))
        views.append(DeltaView(shown.get("ordinal"), word, str(shown.get("table")), columns))
    return views


def beside_target(
    deltas: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, str | None] | None]
) -> list[DeltaView]:
    """Returns deltas beside the rows that the target has, in full: a column's old value is the target's.

    Args:
        deltas: the deltas.
        rows: of each the target's row, as texts; None where it has none.
    """
    views = []
    for delta, row in zip(deltas, rows, strict=True):
        key, told = _mapping(delta.get("key")), row or {}
        written = {} if delta.get("op") == "delete" else {**key, **_mapping(delta.get("row"))}
        columns = tuple(
            ColumnView(
                name, _value(told.get(name, _NOTHING), RowDisplay.FULL),
                _value(written.get(name, _NOTHING), RowDisplay.FULL), name in key,
                name in told and name in written and told[name] != _as_target(written[name]),
            )
            for name in dict.fromkeys((*key, *written, *told))
        )  # fmt: skip
        views.append(DeltaView(delta.get("ordinal"), str(delta.get("op")), str(delta.get("table")), columns))
    return views


def _as_target(value: Any) -> str | None:
    """Returns a value as the target's row has it where the two are spelled alike."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(delta: Any) -> dict[str, Any]:
    """Returns a delta's fields, and the columns of each side under the side's name."""
    flat: dict[str, Any] = {}
    for field, value in _mapping(delta).items():
        if field in _SIDES and isinstance(value, Mapping):
            flat |= {f"{field} {column}": each for column, each in value.items()}
        elif field not in ("table", "uow"):
            flat[field] = value
    return flat


def shown_deltas(deltas: Sequence[Mapping[str, Any]], display: RowDisplay) -> list[dict[str, Any]]:
    """Returns deltas for the copy as JSON, with values only where they may be shown in full."""
    if display is RowDisplay.FULL:
        return [dict(delta) for delta in deltas]
    kept = ("ordinal", "op", "table")
    if display is RowDisplay.NONE:
        return [{name: delta[name] for name in kept if name in delta} for delta in deltas]
    return [_masked_delta(delta) for delta in deltas]


def _masked_delta(delta: Mapping[str, Any]) -> dict[str, Any]:
    masked = {
        side: {name: _masked(value).text for name, value in delta[side].items()} for side in _SIDES if delta.get(side)
    }
    return {name: masked.get(name, value) for name, value in delta.items()}


def _delta(delta: Mapping[str, Any], display: RowDisplay) -> DeltaView:
    columns = () if display is RowDisplay.NONE else tuple(_columns(delta, display))
    return DeltaView(delta.get("ordinal"), str(delta.get("op")), str(delta.get("table")), columns)


def _columns(delta: Mapping[str, Any], display: RowDisplay) -> list[ColumnView]:
    key, row, before = (_mapping(delta.get(side)) for side in _SIDES)
    operation = delta.get("op")
    shown = []
    for name in dict.fromkeys((*key, *row, *before)):
        old = before.get(name, key.get(name) if operation in ("update", "delete") and name in key else _NOTHING)
        new = row.get(name, key.get(name, _NOTHING) if operation != "delete" else _NOTHING)
        changed = name in row and name in before and row[name] != before[name]
        shown.append(ColumnView(name, _value(old, display), _value(new, display), name in key, changed))
    return shown


_NOTHING: Final = object()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _value(value: Any, display: RowDisplay) -> ValueView | None:
    if value is _NOTHING:
        return None
    if display is RowDisplay.MASKED:
        return _masked(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ValueView(text[:MOST_CHARACTERS], len(text), _kind(value))


def _masked(value: Any) -> ValueView:
    kind = _kind(value)
    if kind in ("null", "boolean"):
        shown = "null" if value is None else MASK
    else:
        length = len(value) if isinstance(value, str) else len(json.dumps(value))
        shown = f"{MASK} {kind}, {length:,} character{'' if length == 1 else 's'}"
    return ValueView(shown, len(shown), "null" if value is None else "mask")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "structure"
