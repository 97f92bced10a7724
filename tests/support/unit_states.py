"""Units as the folded log has them once they are dispatched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kainite.log.format.entry import UnitStatus
from kainite.log.state.units import UnitState
from kainite.uow.delta import UnitKind


def unit_state(
    tid: int,
    written: Iterable[int] = (),
    read: Iterable[int] = (),
    *,
    count: int = 1,
    kind: UnitKind = UnitKind.NORMAL,
    fragments: Sequence[int] = (),
    tables: tuple[str, ...] = (),
    unsigned: tuple[str, ...] = (),
    scheme: str | None = None,
) -> UnitState:
    """Returns a unit in progress."""
    return UnitState(
        tid,
        f"T-{tid}",
        count,
        kind,
        UnitStatus.IN_PROGRESS,
        fragments=fragments,
        written=frozenset(written),
        read=frozenset(read),
        tables=tables,
        unsigned=unsigned,
        scheme=scheme,
    )
