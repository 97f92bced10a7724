"""Gathers what belongs to no unit of work: unprocessed records, and emitted lines that name no unit. Without I/O.

Each becomes a failed unit, complete in itself, so that it is listed until a person has decided about it. A failed unit
stays in the memory of the log's owner and of the apply job, so their number for one append is bounded by what units
keep in memory, never by forgetting what was not processed:

* the first :data:`MAX_UNITS` names get a unit each, with the cause, and the offending text;
* the last of these units has everything beyond: its cause tells the first :data:`MAX_CAUSES` causes and the number of
  the others, and its offending text lists all. The offending text is in the log's entry alone, not in memory;
* the listing has each record's place and cause, and the beginning of its payload as long as all payloads of the append
  together have at most :data:`PAYLOADS` characters. Emitted lines that do not fit there are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment, Reject

MAX_UNITS: Final = 20
"""The most units that one append makes of lines that belong to no unit."""

MAX_CAUSES: Final = 20
"""Most causes that a unit keeps in memory."""

PAYLOADS: Final = 256 * 1024
"""Most characters of payloads and lines that one append keeps in offending texts."""

_LISTED_CAUSE: Final = 200


@dataclass(slots=True)
class _FailedUnit:
    """One failed unit while it grows; its offending text is ``text`` for one item, and ``listing`` for several."""

    causes: list[str] = field(default_factory=list)
    more: int = 0
    text: str = ""
    listing: list[str] = field(default_factory=list)

    def add(self, cause: str, text: str, *, listed: bool) -> None:
        if len(self.causes) < MAX_CAUSES:
            self.causes.append(cause)
        else:
            self.more += 1
        self.text = self.text or text
        if listed:
            self.listing.append(f"{cause[:_LISTED_CAUSE]}: {text}" if text else cause[:_LISTED_CAUSE])

    def fragment(self, name: str) -> Fragment:
        single = len(self.causes) == 1
        offending = self.text if single else "\n".join(self.listing)
        rejects = [Reject(cause, "" if number else offending) for number, cause in enumerate(self.causes)]
        if self.more:
            rejects.append(Reject(f"and {self.more} more; the offending text lists them", ""))
        return Fragment(uow=name, ends=(UnitEnd(count=0),), rejects=tuple(rejects))


class Unprocessed:
    """Gathers what belongs to no unit, for one append."""

    def __init__(self) -> None:
        self._units: dict[str, _FailedUnit] = {}
        self._lines = _FailedUnit()
        self._room = PAYLOADS

    def add(self, name: str, cause: str, text: str) -> None:
        """Takes records that were not processed.

        Args:
            name: the name of the records' unit; it is the same name whenever the same records are not processed again.
            cause: where the records are, and why they were not processed.
            text: the beginning of the records' payload.
        """
        if name not in self._units and len(self._units) >= MAX_UNITS:
            name = next(reversed(self._units))
        self._units.setdefault(name, _FailedUnit()).add(cause, self._kept(text), listed=True)

    def add_line(self, cause: str, text: str) -> None:
        """Takes an emitted line, or a part of one, that names no unit."""
        kept = self._kept(text)
        self._lines.add(cause, kept, listed=bool(kept))

    def fragments(self, lines: str) -> list[Fragment]:
        """Returns a fragment for each unit; ``lines`` is the name of the unit that gets the emitted lines."""
        units = dict(self._units)
        if self._lines.causes:
            units[lines] = self._with_lines(units.get(lines))
        return [unit.fragment(name) for name, unit in units.items()]

    def _with_lines(self, same: _FailedUnit | None) -> _FailedUnit:
        if same is None:
            return self._lines
        both = _FailedUnit(
            more=same.more + self._lines.more, text=same.text, listing=[*same.listing, *self._lines.listing]
        )
        causes = [*same.causes, *self._lines.causes]
        both.causes, both.more = causes[:MAX_CAUSES], both.more + max(0, len(causes) - MAX_CAUSES)
        return both

    def _kept(self, text: str) -> str:
        kept = text[: min(Reject.MAX_LINE, self._room)]
        self._room -= len(kept)
        return kept
