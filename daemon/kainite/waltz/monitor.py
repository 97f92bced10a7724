"""A client's appends under way: the feed, a lock failure or the next mount tells the outcome of each.

==========================  ====================================================================
event                       effect
==========================  ====================================================================
the feed shows its id       appended; appends before it that are still open were not: the owner
                            decides a connection's appends in order
a lock failure              refused
a mount is answered         what is still open was not appended, and is not going to be
the client is closed        what is still open is unknown, and its waiter hears so
==========================  ====================================================================
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, auto

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import ReqId


class Fate(Enum):
    APPENDED = auto()
    REFUSED = auto()
    LOST = auto()


@dataclass(frozen=True, slots=True)
class AppendOutcome:
    """The outcome of an append.

    Attributes:
        fate: whether the append was appended, refused, or not appended for another reason.
        transaction: the transaction's id; for a refused append the id of the transaction in its way; −1 for a lost one.
    """

    fate: Fate
    transaction: int = -1


LOST = AppendOutcome(Fate.LOST)


class Monitor:
    """The appends of one client to one partition that are under way, oldest first."""

    def __init__(self) -> None:
        self._open: OrderedDict[ReqId, asyncio.Future[AppendOutcome]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, req_id: ReqId) -> asyncio.Future[AppendOutcome]:
        """Returns the future that will have the outcome of an append that is about to be sent.

        Raises:
            ValueError: an append under this id is under way.
        """
        if req_id in self._open:
            raise ValueError(f"an append {req_id} is under way already")
        future: asyncio.Future[AppendOutcome] = asyncio.get_running_loop().create_future()
        self._open[req_id] = future
        return future

    def fed(self, req_id: ReqId, transaction: int) -> None:
        """Notes a transaction that the feed shows, of this client or another one."""
        if req_id not in self._open:
            return
        while self._open:
            first, future = self._open.popitem(last=False)
            if first == req_id:
                _set(future, AppendOutcome(Fate.APPENDED, transaction))
                return
            _set(future, LOST)

    def refused(self, req_id: ReqId, transaction: int) -> None:
        """Notes a lock failure; has no effect on an append that is decided already."""
        future = self._open.pop(req_id, None)
        if future is not None:
            _set(future, AppendOutcome(Fate.REFUSED, transaction))

    def lose_all(self) -> None:
        """Notes that the owner has no append of this client under way any more."""
        while self._open:
            _set(self._open.popitem(last=False)[1], LOST)

    def close(self) -> None:
        """Tells all tasks that still wait that the client is closed."""
        while self._open:
            future = self._open.popitem(last=False)[1]
            if not future.done():
                future.set_exception(LogUnavailableError("the log's client is closed; whether it appended is unknown"))


def _set(future: asyncio.Future[AppendOutcome], outcome: AppendOutcome) -> None:
    if not future.done():  # its waiter may have been cancelled
        future.set_result(outcome)
