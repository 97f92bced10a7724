"""Judges how many rows a statement met. Pure."""

from __future__ import annotations

from kainite.base.errors import TargetRejectedError
from kainite.uow.delta import Delta
from kainite_spark.targets.statements.planner import Statement


def check_rows(statement: Statement, met: int) -> None:
    """Raises TargetRejectedError unless each delta of a statement met a row.

    Where a delta meets none, the target differs from the source, and the change would be lost.

    Args:
        statement: what was executed.
        met: how many rows it changed.
    """
    shape, deltas = statement.shape, statement.deltas
    if met == len(deltas) or not shape.counts_rows:
        return
    if len(deltas) > 1:
        raise TargetRejectedError(f"{shape.table}: {shape.op} met {met} rows for {len(deltas)} deltas")
    raise TargetRejectedError(f"{shape.table}: {shape.op} met {met} rows, not 1, with {_plain(deltas[0])}")


def _plain(delta: Delta) -> str:
    named = delta.key or delta.row
    return f"({', '.join(named)}) = ({', '.join(map(str, named.values()))})"
