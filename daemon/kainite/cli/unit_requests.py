"""Asks the log's owner to resolve units, and says what became of them.

A retry or a discard is a request in the log's inbox for each unit, in the log's order, which is the order in which the
owner carries them out. At most :data:`AT_ONCE` are without an answer at any time, because the inbox keeps few answers.
A command that is killed leaves requests; the owner carries them out. To run the command again does the rest.

A failed unit is discarded by the owner. Any other unit is discarded by the apply job, unless the target has it already
(:mod:`kainite.owner.requests`); the command asks again until the owner does not know the unit any more, and then says
what became of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from kainite.base.errors import LogRequestError
from kainite.cli.inbox import LeftRequest, leave, take_answer
from kainite.cli.terminal import say
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import read_present_rows
from kainite.owner.requests import ASKED, OK
from kainite.store.dynamodb import DynamoDBStore

AT_ONCE: Final = 50
ASK_AGAIN_SECONDS: Final = 0.5


def resolve(store: DynamoDBStore, partition: str, action: str, names: Sequence[str], timeout: float) -> int:
    """Leaves a request for each unit, in order, and says what became of it; returns 1 if any was refused.

    Raises:
        LogRequestError: the only unit that was named is refused.
        LogUnavailableError: no answer came for ``timeout`` seconds.
    """
    left, asked, refused, open_ends = deque(names), deque[tuple[str, LeftRequest]](), 0, list[str]()
    while left or asked:
        while left and len(asked) < AT_ONCE:
            name = left.popleft()
            asked.append((name, _leave(store, partition, action, name)))
        name, request = asked.popleft()
        answer = take_answer(store, partition, request, len(asked) + len(left), timeout)
        if answer["result"] == OK:
            say(answer["message"])
        elif answer["result"] == ASKED:
            say(answer["message"])
            open_ends.append(name)
        elif len(names) == 1:
            raise LogRequestError(answer["message"])
        else:
            refused += 1
            say(f"refused: {answer['message']}", err=True)
    too_late = _await_discards(store, partition, open_ends, timeout) if open_ends else 0
    if len(names) > 1:
        say(f"{len(names) - refused} of {len(names)} units: {action}" + (f"; {refused} refused" if refused else ""))
    return 1 if refused or too_late else 0


def _await_discards(store: DynamoDBStore, partition: str, names: Sequence[str], timeout: float) -> int:
    """Waits until the apply job has decided on units; says what became of them, and returns how many were applied."""
    deadline = time.monotonic() + timeout
    undecided = deque(names)
    while undecided and time.monotonic() < deadline:
        request = _leave(store, partition, "discard", undecided[0])
        if take_answer(store, partition, request, 0, timeout)["result"] == ASKED:
            time.sleep(ASK_AGAIN_SECONDS)
        else:
            undecided.popleft()
    rows = read_present_rows(store, partition)
    found = {key: row.status for row in rows for key in (str(row.id), row.uow)}
    for name in names:
        if name in undecided:
            say(f"unit {name} is not decided on yet, since no apply job runs, or the target does not answer")
        elif found.get(name) == UnitStatus.COMMITTED:
            say(f"unit {name} was applied before it could be discarded", err=True)
        else:
            say(f"unit {name} is discarded")
    return sum(found.get(name) == UnitStatus.COMMITTED for name in names)


def _leave(store: DynamoDBStore, partition: str, action: str, name: str) -> LeftRequest:
    return leave(store, partition, f"unit {name}", {"action": action, "uow": name})
