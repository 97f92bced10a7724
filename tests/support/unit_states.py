"""Units as the folded log has them once they are dispatched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kainite.log.format.entry import UnitMeta
from kainite.log.state.unit_state import UnitState
from kainite.uow.delta import UnitKind
from kainite.uow.touches import Touched


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
    uow: str | None = None,
) -> UnitState:
    """Returns a unit in progress."""
    touched = Touched(frozenset(written), frozenset(read), tables, unsigned, scheme)
    return UnitState(tid, UnitMeta(uow or f"T-{tid}", count, fragments=tuple(fragments), kind=kind), own=touched)
