"""The first statement of a transaction that writes rows: by what right it writes them. Pure.

The statement touches as many rows as the transaction has work, under a fence; without the fence it touches none. The
session then rolls back, and raises the claim's error. So a task or driver that has been shut out changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.errors import TargetError, TargetFencedError
from kainite.replicate import table_ledger
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied, fence_lost
from kainite_spark.targets.held_deltas import NewUnits
from kainite_spark.targets.postgresql import ledger
from kainite_spark.targets.postgresql.loaded_tables import SqlAndValues, own_statements


@dataclass(frozen=True, slots=True)
class WriteClaim:
    """The right to write.

    Attributes:
        statement: the first statement.
        rows: how many rows it touches if the fence is right.
        lost: raised if it is not.
        repeated: raised if another task has acknowledged a unit meanwhile.
        beside: what else is executed in the transaction.
        size: bytes of the units; 0 if unknown.
    """

    statement: SqlAndValues
    rows: int
    lost: TargetError
    repeated: TargetError
    beside: Sequence[SqlAndValues] = ()
    size: int = 0


def claim_of(fence: Fence, units: Sequence[Unit], new: NewUnits, version: int) -> WriteClaim:
    """Returns the claim of the apply job: it acknowledges the units.

    Args:
        fence: the apply job and micro-batch that write.
        units: the units.
        new: what is to be done for them.
        version: the version of the tables' states that ``new`` was made for.
    """
    which = (fence.log_partition, fence.generation, fence.micro_batch, version)
    tids, uows = (unit.tid for unit in units), (unit.uow for unit in units)
    acknowledged = (fence.log_partition, ledger.array_of_numbers(tids), ledger.array_of_texts(uows))
    return WriteClaim(
        (ledger.ACKNOWLEDGE, (*which, *acknowledged)),
        len(units),
        fence_lost(fence),
        already_applied(fence),
        tuple(own_statements(new, fence.log_partition)),
        sum(unit.size for unit in units) if all(unit.size for unit in units) else 0,
    )


def claim_of_held(load: str, generation: int, places: Sequence[int]) -> WriteClaim:
    """Returns the claim of a table's load: it takes deltas that are held.

    Args:
        load: the name of the table's load.
        generation: the load's generation.
        places: the places of what was held.
    """
    lost = TargetFencedError(f"generation {generation} of {load} may not write any more: it was begun, or gone on with,"
                             " elsewhere")  # fmt: skip
    return WriteClaim((table_ledger.TAKE_HELD, (load, generation, list(places))), len(places), lost, lost)
