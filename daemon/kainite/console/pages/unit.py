"""One unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kainite.base import display
from kainite.base.errors import KainiteError
from kainite.base.redaction import RowValues, redacted_tree
from kainite.console.observed import LogReading, ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.unit_view import delta_views, shown_deltas, timeline
from kainite.log.state.chains import Chains
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.target_parts import TargetPart
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.unit_detail import read_deltas_at
from kainite.log.views.unit_table import LogRow

MOST_DELTAS: Final = 100
"""Deltas on a unit's page; the copy as JSON has :data:`MOST_COPIED`."""

MOST_COPIED: Final = 100_000
MOST_BEHIND: Final = 12
"""Units that are shown of those that wait for another one."""


@dataclass(frozen=True, slots=True)
class FoundUnit:
    """A unit that a request names.

    Attributes:
        application: the application.
        reading: how far its log is read.
        row: the unit's row.
        state: the unit.
        before, behind: the units that it waits for, the root first, and the first ones of those that wait for it.
        more: how many more wait for it.
        parts: what each of several targets has of it; empty for an only target, and where nothing tells.
    """

    application: ObservedApplication
    reading: LogReading
    row: LogRow
    state: UnitState | OpenUnit
    before: Sequence[LogRow]
    behind: Sequence[LogRow]
    more: int
    parts: Mapping[str, TargetPart]

    def deltas(self, most: int) -> list[dict[str, Any]]:
        """Returns the unit's first deltas as the log has them.

        Raises:
            LogUnavailableError, LogCorruptError: they cannot be read.
        """
        entries = self.state.entries if isinstance(self.state, UnitState) else tuple(self.state.fragments)
        return read_deltas_at(self.application.store, self.application.settings.log.partition, entries, most)


def unit(frame: PageFrame, request: Request) -> Response:
    """Shows one unit."""
    found = found_unit(frame, request)
    problem, deltas = "", []
    try:
        deltas = found.deltas(MOST_DELTAS + 1)
    except KainiteError as error:
        problem = str(error)
    display_of, state = frame.settings.shown_values, found.state
    return frame.page(
        request, "unit.html", found.application, reading=found.reading, row=found.row, chain=found,
        timeline=timeline(found.row), deltas=delta_views(deltas[:MOST_DELTAS], display_of),
        more=len(deltas) > MOST_DELTAS, problem=problem, display=display_of,
        attempts=state.attempt + 1 if isinstance(state, UnitState) else 0,
        obstacle=state.obstacle if isinstance(state, UnitState) else None,
    )  # fmt: skip


def unit_json(frame: PageFrame, request: Request) -> Response:
    """Gives one unit as JSON."""
    found = found_unit(frame, request)
    row = found.row
    shown = {name: getattr(row, name) for name in row.__slots__ if name not in ("signature", "trans_in")}
    chained: dict[str, Any] = {
        "before": [_chained(each) for each in found.before],
        "behind": [_chained(each) for each in found.behind],
    }
    if found.parts:
        chained["targets"] = [{"target": name} | part.told() for name, part in found.parts.items()]
    copied = RowValues(shown_deltas(found.deltas(MOST_COPIED), frame.settings.shown_values))
    return Response(
        display.as_json(redacted_tree({**shown, **chained, "deltas": copied})), media_type="application/json"
    )


def found_unit(frame: PageFrame, request: Request, named: Mapping[str, str] | None = None) -> FoundUnit:
    """Returns the unit that a request names by ``uow`` or ``id``.

    Args:
        frame, request: the frame, and the request.
        named: has the names; None: the query.

    Raises:
        HTTPException: no such unit is in the log.
    """
    application, asked = frame.application(request), named if named is not None else request.query_params
    reading = application.read_units()
    name, number = asked.get("uow", ""), asked.get("id", "")
    units = application.units
    with application.lock:
        unit = units.unit(int(number)) if number.isdecimal() and len(number) < 19 else units.named(name)
        if unit is None:
            more = "" if reading.complete else "; the log is not read to its end yet: try again"
            raise HTTPException(
                404,
                f"no unit {number or name!r} is in the log; units that were applied leave it after a while{more}",
            )
        return FoundUnit(application, reading, units.row(unit), unit, *_chain(application, unit), _parts(units, unit))


def _parts(units: FollowedUnits, unit: UnitState | OpenUnit) -> Mapping[str, TargetPart]:
    return {} if units.parts is None or isinstance(unit, OpenUnit) else units.parts.of(unit.tid)


def _chain(
    application: ObservedApplication, unit: UnitState | OpenUnit
) -> tuple[Sequence[LogRow], Sequence[LogRow], int]:
    if isinstance(unit, OpenUnit):
        return (), (), 0
    units = application.units
    waiting = (each for each in units.dispatched() if each.cause is not None and not each.resolved)
    chains = Chains((each.tid, each.status.value, each.cause) for each in waiting)
    behind = chains.behind(unit.tid)
    before = [units.unit(tid) for tid in reversed(chains.before(unit.tid))]
    shown = [units.unit(tid) for tid in behind[:MOST_BEHIND]]
    return (
        [units.row(each) for each in before if each is not None],
        [units.row(each) for each in shown if each is not None],
        max(0, len(behind) - MOST_BEHIND),
    )


def _chained(row: LogRow) -> dict[str, Any]:
    return {"id": row.id, "uow": row.uow, "status": row.status, "cause": row.cause}
