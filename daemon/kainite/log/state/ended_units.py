"""Remembers the deltas of units that the watermark ended, to tell a record that comes again from one that comes late.

A unit that a marker ends has all its deltas: every further delta under its name is a copy. The watermark
(:mod:`kainite.log.collecting.watermark`) ends a unit by a judgement that a late record proves wrong, so the unit's name
does not say enough: a record is a copy when its unit has the delta, and late when it does not. So the deltas'
identities are remembered, eight bytes each, up to :data:`MOST_DELTAS`; units leave the oldest first. They are a part of
the folded log and of each snapshot: every fold of the same entries remembers the same.

A record for a unit that has left is taken for late: it fails where a person sees it, and the cause says that it may be
a copy. It is never dropped unseen, and never applied without a person's decision.

The deltas of late units (``NAME+late``, ``NAME+late2`` …) are remembered under the name of the unit that they were late
for. A process that only reads the log (the apply job, a view) forgets all deltas: :meth:`EndedUnits.disregard`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from kainite.uow.identity import Identity

MOST_DELTAS: Final = 250_000
"""The most deltas and units that are remembered together, except those of the latest unit: 2 MB, and the names."""

_BYTES: Final = 8
"""Bytes of an identity: deltas of one unit alone are compared, so two of them do not meet by chance."""

_LATE: Final = re.compile(r"\+late[0-9]*\Z", re.ASCII)


def late_name(uow: str, number: int) -> str:
    """Returns the name of the first, second … unit with late parts of ``uow``."""
    return f"{uow}+late{number if number > 1 else ''}"


def on_time_name(uow: str) -> str:
    """Returns the name of the unit that a late unit belongs to; the name of any other unit as it is."""
    return _LATE.sub("", uow)


def is_late_name(uow: str) -> bool:
    """Tells whether a late unit may have the name, so that no source may use it."""
    return on_time_name(uow) != uow


class EndedUnits:
    """The units that are remembered, oldest first.

    Args:
        units: name, due time and identities of each unit, oldest first.
    """

    def __init__(self, units: Iterable[tuple[str, int, bytes]] = ()) -> None:
        self._units = {uow: (due_ms, packed) for uow, due_ms, packed in units}
        self._deltas = sum(len(packed) // _BYTES for _, packed in self._units.values())
        self._disregarded = False

    def __contains__(self, uow: str) -> bool:
        return uow in self._units

    def __len__(self) -> int:
        return len(self._units)

    def due_ms(self, uow: str) -> int | None:
        """Returns the time at which the unit's grace began; None when it is not remembered."""
        found = self._units.get(uow)
        return None if found is None else found[0]

    def has(self, uow: str, identities: Iterable[Identity]) -> list[bool]:
        """Tells for each identity whether the unit has such a delta."""
        _, packed = self._units.get(uow, (0, b""))
        known = {packed[begin : begin + _BYTES] for begin in range(0, len(packed), _BYTES)}
        return [_short(identity) in known for identity in identities]

    def add(self, uow: str, due_ms: int, identities: Iterable[Identity]) -> None:
        """Remembers deltas of a unit, and forgets the oldest units.

        Args:
            uow: the unit.
            due_ms: the beginning of the unit's grace, in milliseconds since the epoch; only the first call sets it.
            identities: the identities of deltas that are not remembered yet.
        """
        if self._disregarded:
            return
        due_ms, packed = self._units.get(uow, (due_ms, b""))
        more = b"".join(map(_short, identities))
        self._units[uow] = due_ms, packed + more
        self._deltas += len(more) // _BYTES
        while self._deltas + len(self._units) > MOST_DELTAS and len(self._units) > 1:
            _, oldest = self._units.pop(next(iter(self._units)))
            self._deltas -= len(oldest) // _BYTES

    def captured(self) -> dict[str, tuple[int, bytes]]:
        """Returns due time and identities of each unit, oldest first; no later change of this set changes them."""
        return dict(self._units)

    def disregard(self) -> None:
        """Forgets all units, and remembers no further one."""
        self._units, self._deltas, self._disregarded = {}, 0, True


def _short(identity: Identity) -> bytes:
    if isinstance(identity, int):
        return hashlib.blake2b(str(identity).encode(), digest_size=_BYTES).digest()
    return identity[:_BYTES]
