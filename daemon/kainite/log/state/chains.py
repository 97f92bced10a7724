"""The chains in which units wait: the unit at the end of a blocked unit's chain, and the units behind a unit. Pure.

A blocked unit's cause names one unit that it waits for, by its transaction id. This unit may be blocked itself. The
last unit of the chain is its *root*: a failed unit, which a person resolves, or a delayed unit, which goes on by
itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kainite.log.format.entry import UnitStatus
from kainite.log.state.unit_state import UnitState

_WAITS: Final = re.compile(r"waits for (\d+)")


def named(cause: str | None, units: Mapping[int, UnitState]) -> str | None:
    """Returns a cause with the name of the unit that it says to wait for: ``waits for 17 (T-4)``.

    Args:
        cause: a unit's cause.
        units: units by transaction id; one that is not among them stays a number.
    """
    found = _WAITS.match(cause or "")
    if cause is None or found is None or (holder := units.get(int(found[1]))) is None:
        return cause
    return f"{found[0]} ({holder.uow}){cause[found.end() :]}"


class Chains:
    """The chains among the units of a log.

    Args:
        units: transaction id, status and cause of each unresolved unit.
    """

    def __init__(self, units: Iterable[tuple[int, str, str | None]]) -> None:
        self._holder: dict[int, int] = {}
        self._behind: dict[int, list[int]] = defaultdict(list)
        for tid, status, cause in units:
            if status == UnitStatus.BLOCKED and (named := _WAITS.match(cause or "")):
                holder = int(named[1])
                self._holder[tid] = holder
                self._behind[holder].append(tid)

    def before(self, tid: int) -> Sequence[int]:
        """Returns the units that ``tid`` waits for, the nearest first and its root last; empty if it waits for none."""
        chain: dict[int, None] = {}
        while (holder := self._holder.get(tid)) is not None and holder not in chain:
            chain[holder] = None
            tid = holder
        return tuple(chain)

    def behind(self, tid: int) -> Sequence[int]:
        """Returns the units that wait for ``tid``, directly or behind others, in the log's order."""
        found: set[int] = set()
        ahead = [tid]
        while ahead:
            direct = [each for each in self._behind.get(ahead.pop(), ()) if each not in found]
            found.update(direct)
            ahead += direct
        return tuple(sorted(found - {tid}))
