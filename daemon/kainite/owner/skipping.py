"""Carries out the request to give up numbers that are awaited (``kainite log skip``).

The request is ``{"action": "skip", "number": N, "by": WHO}``. One UNIT entry stands for all numbers from the awaited
one to N, as for numbers that did not come in time, and a STATUS entry in the same batch notes that the request is
answered: after a crash it is carried out once or not at all.

A number that a unit in the log has is not given up: the order would go past that unit. So the request is refused while
a unit that is being collected has such a number. A unit that comes later with a number that was given up fails, and a
retry applies it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kainite.log.collecting.overdue import give_up_numbers
from kainite.log.collecting.standing import next_number
from kainite.log.collecting.unit_entries import release_ready
from kainite.log.format.entry import EntryKind, StatusMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.requests import OK, refusal
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import MAX_NATURAL

SKIP: Final = "skip"
"""The action of such a request."""

_NUMBER: Final = re.compile("[0-9]{1,19}", re.ASCII)


def _lowest_known(state: FoldedLog, first: int, last: int) -> tuple[int, str] | None:
    """Returns the lowest of some numbers that a unit has that is being collected, with the unit's name."""
    numbered = ((unit.number, unit.uow) for unit in state.open.values() if unit.number is not None)
    return min((each for each in numbered if first <= each[0] <= last), default=None)


def skip(journal: Journal, rules: UowSettings, request_id: str, request: Mapping[str, str]) -> Mapping[str, str]:
    """Writes the entries that carry a request out, if the state allows it; returns the answer.

    Never raises because of the request, which anybody may have written.
    """
    state, told = journal.state, request.get("number", "")
    if request_id in state.answered:
        return {"result": OK, "message": "done before"}
    if rules.order is not UowOrder.DENSE:
        return refusal("no number is awaited: uowOrder is not dense")
    if not _NUMBER.fullmatch(told) or int(told) >= MAX_NATURAL:
        return refusal(f"{told[:40]!r} is no number of a unit")
    first, last = next_number(state, rules), int(told)
    if last < first:
        return refusal(f"number {first} is awaited, which is beyond {last}")
    known = _lowest_known(state, first, last)
    if known is not None:
        below = f"skip at most {known[0] - 1}" if known[0] > first else "it goes when it is complete, or overdue"
        return refusal(f"unit {known[1]} has number {known[0]} and is being collected: {below}")
    give_up_numbers(journal, first, last, f"is waited for: skipped by {request.get('by', 'somebody')}")
    journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
    release_ready(journal, rules)
    return {"result": OK, "message": f"numbers {first} to {last} are given up; number {last + 1} is next"}
