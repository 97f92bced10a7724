"""Makes the records of what people ask the log's owner for (:mod:`kainite.log.state.operations`).

A request names who asks (``by``), why (``why``) and when (``at``, milliseconds since the epoch). Anybody who may write
the log's table may write a request, so its texts are bounded, and what is missing is said to be so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kainite.base.clock import epoch_ms
from kainite.log.format.entry import EntryKind, OperationKind, OperationMeta, OperationResult
from kainite.log.state.journal import Journal
from kainite.log.state.operations import bounded

NOBODY: Final = "somebody"
_MILLIS: Final = re.compile("[0-9]{1,14}", re.ASCII)
"""Times up to the year 5138: whoever shows a record can show each of them, as Python's years end with 9999."""

RESULTS: Final[Mapping[str, OperationResult]] = {
    "ok": OperationResult.DONE,
    "asked": OperationResult.ASKED,
    "refused": OperationResult.REFUSED,
}
"""The result that is recorded of an answer's."""


def record(
    journal: Journal,
    request_id: str,
    request: Mapping[str, str],
    what: OperationKind,
    about: str,
    answer: Mapping[str, str],
) -> None:
    """Writes the record of a request, and of its answer."""
    result = RESULTS[answer["result"]]
    write_record(journal, asked_for(request_id, request, what, about, result, answer["message"]))


def asked_for(
    request_id: str,
    request: Mapping[str, str],
    what: str,
    about: str,
    result: OperationResult,
    outcome: str = "",
) -> OperationMeta:
    """Returns the record of a request."""
    asked = asked_ms(request)
    at_ms = epoch_ms() if asked is None else asked
    return bounded(
        OperationMeta(
            request_id, what, about, request.get("by", NOBODY), request.get("why", ""), at_ms, result, outcome
        )
    )


def asked_ms(request: Mapping[str, str]) -> int | None:
    """Returns when a request was made, by the asker's clock, in epoch milliseconds; None where it is not told."""
    told = request.get("at", "")
    return int(told) if _MILLIS.fullmatch(told) else None


def about_of(request: Mapping[str, str]) -> str:
    """Returns what a request is about, as it names it."""
    return next((told for key in ("uow", "filter", "number", "name") if (told := request.get(key))), "")


def write_record(journal: Journal, operation: OperationMeta) -> None:
    """Writes the entry of an operation."""
    journal.write(EntryKind.OPERATION, operation)
