"""What a comparison of source and target found, as text and JSON show it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from kainite.base.words import counted
from kainite.replicate.known_rows import Explanation
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.stop_ledger import UnresolvedUnit
from kainite.replicate.verify_ledger import GOOD, VerifyOutcome


class ShownValues(StrEnum):
    """How the values of rows that differ are shown; their keys always are."""

    FULL = "full"
    MASKED = "masked"  # length and a digest
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RowReport:
    """A row that differs.

    Attributes:
        table: its table, with the schema.
        key: the texts of its key; empty for a table without one.
        how: how it differs.
        why: whether a unit that is not applied explains it.
        times: how many such rows there are, of a table without a key.
        columns: the columns whose values differ, or all where one side has no such row.
        source, target: the texts of these columns; None where a side has no such row.
    """

    table: str
    key: dict[str, str]
    how: RowDifference
    why: Explanation
    times: int
    columns: tuple[str, ...]
    source: tuple[str | None, ...] | None
    target: tuple[str | None, ...] | None

    def shown(self, values: ShownValues) -> RowReport:
        """Returns the row with its values as they are to be shown."""
        if values is ShownValues.FULL:
            return self
        key = self.key if values is not ShownValues.NONE or self.key else {}
        return RowReport(self.table, key, self.how, self.why, self.times, self.columns,
                         _hidden(self.source, values), _hidden(self.target, values))  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table that was compared.

    Attributes:
        table: its name, with the schema.
        rows_source, rows_target: how many rows each side has.
        missing, extra, changed: how many rows differ, and no unit explains it.
        unsure: how many more may be explained by a unit of which not all rows are known.
        known: how many more differ because a unit is not applied.
    """

    table: str
    rows_source: int
    rows_target: int
    missing: int = 0
    extra: int = 0
    changed: int = 0
    unsure: int = 0
    known: int = 0

    @property
    def different(self) -> int:
        """Returns how many rows differ, and no unit explains it."""
        return self.missing + self.extra + self.changed


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a comparison.

    Attributes:
        ended_at: when it ended, in ISO 8601.
        position: the point: both sides were compared as of it.
        tables: the tables.
        rows: some of the rows that differ.
        left_out: tables that could not be compared, with the reason.
        units: the units from before the point that were not in the target.
        seconds: how long it took.
        held_ms: for how many milliseconds the apply job stood still; None where it has not told.
        wire_bytes: how many bytes of values came from both servers.
    """

    ended_at: str
    position: str
    tables: tuple[TableReport, ...]
    rows: tuple[RowReport, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    units: tuple[UnresolvedUnit, ...] = ()
    seconds: float = 0.0
    held_ms: int | None = None
    wire_bytes: int = 0

    @property
    def verdict(self) -> str:
        """Returns ``equal``, ``known``, ``unsure``, ``incomplete`` or ``different``, the worst that holds."""
        if any(table.different for table in self.tables):
            return "different"
        if self.left_out:
            return "incomplete"
        if any(table.unsure for table in self.tables):
            return "unsure"
        return "known" if any(table.known for table in self.tables) else "equal"

    @property
    def passed(self) -> bool:
        """Tells whether every row is equal, or differs by a unit that is known not to be applied."""
        return self.verdict in GOOD

    def first_rows(self, most: int) -> VerifyReport:
        """Returns the report with at most so many rows."""
        return replace(self, rows=self.rows[:most])

    def outcome(self) -> VerifyOutcome:
        """Returns the result in short."""
        return VerifyOutcome(
            self.ended_at,
            self.position,
            self.verdict,
            len(self.tables),
            sum(table.rows_source for table in self.tables),
            sum(table.different for table in self.tables),
            sum(table.known for table in self.tables),
            sum(table.unsure for table in self.tables),
            len(self.left_out),
            round(self.seconds, 3),
        )

    def as_json(self, values: ShownValues) -> dict[str, Any]:
        """Returns the result as it is printed with ``--json``."""
        units = [
            {"tid": unit.tid, "uow": unit.uow, "status": unit.status, "cause": unit.cause, "tables": unit.tables}
            for unit in self.units
        ]
        rows = [asdict(row.shown(values)) for row in self.rows]
        return {"verdict": self.verdict, **asdict(self), "rows": rows, "units": units}

    def lines(self, values: ShownValues) -> Iterator[str]:
        """Yields the result as lines of text, the verdict last."""
        for unit in self.units:
            yield f"not applied: unit {unit.uow} ({unit.status}), of {', '.join(unit.tables) or 'no known table'}"
        for name, why in self.left_out.items():
            yield f"not compared: {name}: {why}"
        for row in self.rows:
            yield from _lines(row.shown(values))
        for table in self.tables:
            if found := _counts(table):
                yield f"{table.table}: {found}"
        yield summary_of(self.outcome())


def summary_of(outcome: VerifyOutcome) -> str:
    """Returns a result in one line."""
    compared = f"{counted(outcome.tables, 'table')}, {counted(outcome.rows, 'row')}"
    told = f"{outcome.verdict}: {compared} as of {outcome.position}"
    parts = {"differ": outcome.different, "may differ by a unit that is not applied": outcome.unsure,
             "differ by units that are not applied": outcome.known}  # fmt: skip
    told += "".join(f", {count:,} {what}" for what, count in parts.items() if count)
    told += f", {counted(outcome.left_out, 'table')} not compared" if outcome.left_out else ""
    return f"{told}, in {outcome.seconds:.1f} s"


_MARKS: Final = {Explanation.NONE: "", Explanation.UNSURE: " (unsure)", Explanation.KNOWN: " (known)"}


def _lines(row: RowReport) -> Iterator[str]:
    key = ", ".join(f"{name}={text}" for name, text in row.key.items()) or "a row"
    times = f", {row.times} times" if row.times > 1 else ""
    yield f"{row.how}{_MARKS[row.why]}: {row.table} {key}{times}"
    for place, column in enumerate(row.columns):
        yield f"    {column}: {_pair(row, place)}"


def _pair(row: RowReport, place: int) -> str:
    sides = [f"{name} {_shown(texts[place])}" for name, texts in (("source", row.source), ("target", row.target))
             if texts is not None]  # fmt: skip
    return " | ".join(sides)


def _shown(text: str | None) -> str:
    return "NULL" if text is None else repr(text)


def _counts(table: TableReport) -> str:
    counts = {"missing": table.missing, "extra": table.extra, "changed": table.changed, "unsure": table.unsure,
              "known": table.known}  # fmt: skip
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _hidden(texts: tuple[str | None, ...] | None, values: ShownValues) -> tuple[str | None, ...] | None:
    if texts is None:
        return None
    if values is ShownValues.NONE:
        return tuple("…" for _ in texts)
    return tuple(None if text is None else _digest(text) for text in texts)


def _digest(text: str) -> str:
    return f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]}"
