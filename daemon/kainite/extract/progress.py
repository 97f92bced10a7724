"""The progress of an extraction: a line that changes, on a terminal; events in JSON, for scripts; or nothing.

The line ends in a carriage return, so that log lines are written over it. The code that meets a failure logs it;
nothing here is printed once a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from kainite.base import display
from kainite.base.redaction import redacted, redacted_tree
from kainite.base.words import counted
from kainite.extract.offsets.place import Json, Place
from kainite.extract.output.sink import Totals

EVERY = 0.5
_CLEAR = "\x1b[2K"
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Showing:
    """The display of progress.

    Attributes:
        line: whether a line is shown on standard error, a terminal.
        events: whether JSON objects, a line each, are written to standard output.
    """

    line: bool
    events: bool


class ExtractionProgress:
    """The progress of one extraction.

    Args:
        showing: where the progress is shown.
        totals: the sums of what has been put; they are read whenever something is shown.
        clock: a monotonic clock, seconds.
    """

    def __init__(self, showing: Showing, totals: Totals, clock: Callable[[], float] = time.monotonic) -> None:
        self._showing = showing
        self._totals = totals
        self._clock = clock
        self._shown_at = self._began = clock()
        self._shown_records = 0
        self._place: Place | None = None

    def say(self, name: str, **fields: Json) -> None:
        """Writes an event for scripts, with what has been put so far."""
        if self._showing.events:
            counts = {"records": self._totals.records, "units": self._totals.units}
            click.echo(display.as_json(redacted_tree({"event": name, "time": time.time(), **counts, **fields})))

    def moved(self, place: Place | None) -> None:
        """Shows the line anew, after messages were put or a cycle ended; ``place`` is the stored place, if any."""
        self._place = place
        since = self._clock() - self._shown_at
        if self._showing.line and since >= EVERY:
            rate = (self._totals.records - self._shown_records) / since
            self._shown_at, self._shown_records = self._clock(), self._totals.records
            click.echo(f"{_CLEAR}{self._text(rate)}\r", err=True, nl=False)

    def close(self) -> None:
        """Shows the last figures, and leaves the line."""
        if self._showing.line:
            rate = self._totals.records / max(self._clock() - self._began, 1e-3)
            click.echo(f"{_CLEAR}{self._text(rate)}", err=True)

    def _text(self, rate: float) -> str:
        records = click.style(counted(self._totals.records, "record"), bold=True)
        parts = [records, f"{rate:,.0f}/s", counted(self._totals.units)]
        if self._place is not None:
            shown = redacted(display.as_json(self._place.start))
            parts.append(f"offset {shown if len(shown) <= _WIDTH else shown[:_WIDTH] + '…'}")
        return " · ".join(parts)
