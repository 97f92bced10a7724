"""Answers who holds a row of the target, from the owner's memory, once all entries in the answer are durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kainite.base.errors import LogRequestError
from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog
from kainite.log.views.row_holders import Toucher, touchers
from kainite.owner.owner import LogOwner
from kainite.peers.messages import Holder, Message, RequestRefused, RowAnswer, RowRequest
from kainite.uow.current_catalogue import CurrentCatalogue

MOST_UNITS: Final = 1_000
"""How many units an answer may name; if more units touch the row, the asking side reads the log."""


async def row_answer(request: RowRequest, owner: LogOwner, catalogue: CurrentCatalogue) -> Message:
    """Returns the answer: the units that touch the row, or why the owner cannot answer."""
    found: list[Toucher] = []

    def asked(state: FoldedLog) -> Sequence[Entry]:
        found.extend(touchers(state, catalogue.signing.catalogue, request.table, request.key))
        return ()

    try:
        await owner.write(asked)
    except LogRequestError as error:
        return RequestRefused(owner.generation, request.number, str(error))
    told = tuple([_holder(unit) for unit in found[:MOST_UNITS]])
    return RowAnswer(owner.generation, request.number, told, len(found))


def _holder(unit: Toucher) -> Holder:
    return Holder(unit.id, unit.uow, unit.status, unit.instance, unit.waits_for, unit.cause)
