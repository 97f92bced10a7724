"""Judges how many rows a statement met. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.errors import TargetRejectedError
from kainite.base.words import counted
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.statements.planner import Statement


def check_rows(statement: Statement, met: int, fixed: Sequence[str] = ()) -> None:
    """Raises TargetRejectedError unless each delta of a statement met a row.

    Where a delta meets none, the target differs from the source, and the change would be lost. A delete that the source
    tells behind that of a parent may find its row deleted already, by the target's own foreign key.

    Args:
        statement: what was executed.
        met: how many rows it changed.
        fixed: columns that the target compares, since an update cannot write them.
    """
    shape, deltas = statement.shape, statement.deltas
    if met == len(deltas) or not shape.counts_rows or _may_be_gone(statement, met):
        return
    why = f", or {', '.join(fixed)} is GENERATED ALWAYS AS IDENTITY and has another value there" if fixed else ""
    told = f"{shape.table}: {shape.op} met {counted(met, 'row')}"
    if len(deltas) > 1:
        raise TargetRejectedError(f"{told} for {len(deltas)} deltas{why}")
    raise TargetRejectedError(f"{told}, not 1, with {_plain(deltas[0])}{why}")


def _may_be_gone(statement: Statement, met: int) -> bool:
    return statement.shape.reached and statement.shape.op is Operation.DELETE and met < len(statement.deltas)


def _plain(delta: Delta) -> str:
    named = delta.key or delta.row
    return f"({', '.join(named)}) = ({', '.join(map(str, named.values()))})"
