"""Looks at HEAD for a member: who owns the log, whether it may be claimed, and where its owner is reached."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from kainite.base.errors import LogUnavailableError
from kainite.base.logs import event
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogHead, LogStore
from kainite.log.state.summary import from_text
from kainite.owner.mount import LeaseWatch, holder_of, seconds_held
from kainite.peers import address as addresses
from kainite.peers.sharing.membership import HeadSeen, HeadUnread
from kainite.peers.sharing.present_log import PresentLog

_logger = logging.getLogger(__name__)


class ToldOnce:
    """Logs a warning about a lasting condition once, until the condition changes or is over."""

    def __init__(self) -> None:
        self.told = ""

    def say(self, name: str, **fields: object) -> None:
        if self.told != name:
            self.told = name
            event(_logger, logging.WARNING, name, **fields)

    def is_over(self) -> None:
        self.told = ""


@dataclass(slots=True, eq=False)
class HeadLook:
    """Looks at HEAD for one member.

    Attributes:
        store, partition: the log's store, and the name of its log partition.
        worker, process: this process's worker id and identity.
        watch: measures the owner's lease.
        present_log: is told whether an owner lives elsewhere.
        told: logs warnings.
        assigned: the digest of the targets in this process's settings.
    """

    store: LogStore
    partition: str
    worker: str
    process: ProcessIdentity
    watch: LeaseWatch
    present_log: PresentLog
    told: ToldOnce
    assigned: str = ""
    _head: LogHead | None = None  # as it was seen last
    _warned: bool = False

    async def look(self) -> HeadSeen | HeadUnread:
        """Reads HEAD; returns the event for the membership."""
        try:
            head = await asyncio.to_thread(self.store.read_head, self.partition)
        except LogUnavailableError as error:
            self.present_log.held_elsewhere = False
            self.told.say("log not looked at", error=error)
            return HeadUnread()
        self._head = head
        return HeadSeen(0, free=True) if head is None else self._seen(head)

    def elsewhere(self) -> str:
        """Returns the address of the log's owner in another process; empty when the address is not known."""
        head = self._head
        return head.address if head is not None and not self._is_mine(head) else ""

    def other_targets(self) -> str:
        """Returns the worker id of an owner in another process whose settings have other targets; empty for none."""
        head = self._head
        return (head.owner or "") if head is not None and self._differs(head) else ""

    def _differs(self, head: LogHead) -> bool:
        """Tells whether the owner, or the last one, has other targets, as far as it has told."""
        summary = None if self._is_mine(head) else from_text(head.summary)
        return summary is not None and summary.assigned != self.assigned

    def _seen(self, head: LogHead) -> HeadSeen:
        left = seconds_held(head, self.worker, self.watch, self.process)
        self.present_log.held_elsewhere = left > 0
        reachable = None if self._is_mine(head) else addresses.reached_by(head.address, head.token)
        if left > 0 and reachable is None:
            self.told.say("waiting for the log", cause=_why_waiting(head, self.worker), lease_left=round(left, 1))
        if not self._warned and self.watch.has_living_namesake(self.worker) and not self._is_mine(head):
            self._warned = True
            event(_logger, logging.ERROR, "another daemon runs under this worker id: give each its own workerId",
                  worker=self.worker, holder=holder_of(head))  # fmt: skip
        return HeadSeen(head.generation, left <= 0, reachable, self._differs(head))

    def _is_mine(self, head: LogHead) -> bool:
        return head.process == self.process.as_text()


def _why_waiting(head: LogHead, worker: str) -> str:
    holder = holder_of(head, worker)
    address = addresses.from_text(head.address)
    if address is None:
        return f"{holder} owns it and takes no connections"
    if not address.is_reachable:
        return f"{holder} owns it and listens on {address} of its own host alone: set logListen there"
    return f"{holder} owns it"
