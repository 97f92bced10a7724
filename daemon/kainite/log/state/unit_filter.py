"""Selects units of work, the same way for whoever shows them and for the log's owner, who carries requests out.

A filter travels to the owner as JSON in a request, so that one request is about all units that it selects.
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final, Protocol

import msgspec

from kainite.base.errors import LogRequestError


class FilteredUnit(Protocol):
    """What a filter looks at; rows of the log's table have it, and units of the folded log."""

    @property
    def uow(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def tables(self) -> Collection[str]: ...

    @property
    def cause(self) -> str | None: ...

    @property
    def heard_ms(self) -> int | None: ...


class UnitFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A filter of units. A unit must fit one value of each kind of which values are given.

    Attributes:
        statuses: the units' statuses.
        tables: tables that the unit changes.
        names: the units' names, in which ``*`` and ``?`` stand for any characters and any one character.
        causes: pieces of the cause's text; upper and lower case do not differ.
        since_ms, until_ms: the first time, and the first one no more, at which the unit may have arrived, milliseconds
            since the epoch. A unit of which no time is known does not fit where one of the two is given.
    """

    statuses: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def __bool__(self) -> bool:
        return self != EVERY_UNIT

    def takes(self, unit: FilteredUnit) -> bool:
        """Tells whether the filter lets a unit pass."""
        return (
            (not self.statuses or unit.status in self.statuses)
            and (not self.names or any(fnmatchcase(unit.uow, name) for name in self.names))
            and (not self.tables or any(table in unit.tables for table in self.tables))
            and (not self.causes or self._fits_cause((unit.cause or "").lower()))
            and self._fits_time(unit.heard_ms)
        )

    def as_text(self) -> str:
        """Returns the filter as JSON."""
        return msgspec.json.encode(self).decode()

    def in_words(self) -> str:
        """Returns the filter as a person reads it."""
        kinds = (
            ("status", self.statuses), ("table", self.tables), ("name", self.names), ("cause", self.causes),
            ("since", () if self.since_ms is None else (str(self.since_ms),)),
            ("until", () if self.until_ms is None else (str(self.until_ms),)),
        )  # fmt: skip
        return ", ".join(f"{kind} {' or '.join(values)}" for kind, values in kinds if values) or "all"

    def _fits_cause(self, cause: str) -> bool:
        return any(piece.lower() in cause for piece in self.causes)

    def _fits_time(self, heard_ms: int | None) -> bool:
        if self.since_ms is None and self.until_ms is None:
            return True
        if heard_ms is None or (self.since_ms is not None and heard_ms < self.since_ms):
            return False
        return self.until_ms is None or heard_ms < self.until_ms


EVERY_UNIT: Final = UnitFilter()


def filter_from(text: str) -> UnitFilter:
    """Returns the filter in a request.

    Raises:
        LogRequestError: the text is none, or has a kind that this release does not know.
    """
    try:
        return msgspec.json.decode(text, type=UnitFilter)
    except (msgspec.MsgspecError, ValueError) as error:
        raise LogRequestError(f"{text[:80]!r} is no filter of units: {error}") from error
