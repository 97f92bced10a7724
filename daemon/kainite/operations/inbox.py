"""Requests to the log's owner through the inbox in the log's table, and the owner's answers."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogError, LogUnavailableError
from kainite.log.contract import LogStore
from kainite.observe.check import spoken

POLL_SECONDS: Final = 0.1


@dataclass(slots=True)
class LeftRequest:
    """A request that was left in the inbox, and what it is about."""

    about: str
    request_id: str


@dataclass(frozen=True, slots=True)
class WaitingRequests:
    """The requests in the inbox that no owner has answered, without records of what is done.

    Attributes:
        count: how many wait, of those that one look reads (:data:`~kainite.log.contract.REQUESTS_AT_ONCE`).
        oldest_ms: when the oldest of them was made, by the asker's clock; None where nothing tells.
    """

    count: int = 0
    oldest_ms: int | None = None

    def in_words(self, now_ms: int) -> str:
        """Returns a sentence for people."""
        if not self.count:
            return "no request waits for the owner"
        from kainite.owner.expiry import EXPIRES_S

        told = "1 request waits" if self.count == 1 else f"{self.count:,} requests wait"
        age = "" if self.oldest_ms is None else f", the oldest for {spoken(max(0, now_ms - self.oldest_ms) / 1000)}"
        return f"{told} for the owner{age}; each expires after {spoken(EXPIRES_S)}"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks for an operation, and why.

    Attributes:
        who: the person; :func:`this_person` for the user of this process.
        why: the reason; may be empty.
    """

    who: str
    why: str = ""

    def signed(self, request: Mapping[str, str]) -> Mapping[str, str]:
        """Returns a request with who asks, why, and when."""
        return {**request, "by": self.who, "why": self.why, "at": str(epoch_ms())}


def this_person() -> str:
    """Returns the user of this process and its host, as ``user@host``."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def waiting_requests(store: LogStore, partition: str) -> WaitingRequests | None:
    """Returns what waits for the log's owner; None for who may not read the inbox, and where it is not reached."""
    try:
        found = store.read_requests(partition)
    except LogError:
        return None
    if not found:  # mostly; what the owner makes of requests takes time to import
        return WaitingRequests()
    from kainite.owner.expiry import EXPIRING
    from kainite.owner.recording import asked_ms

    waiting = [request for _, request in found if request.get("action") in EXPIRING]
    times = [at for request in waiting if (at := asked_ms(request)) is not None]
    return WaitingRequests(len(waiting), min(times, default=None))


def leave(store: LogStore, partition: str, about: str, request: Mapping[str, str], asker: Asker) -> LeftRequest:
    """Leaves a request, with the name of who asks."""
    return LeftRequest(about, store.put_request(partition, asker.signed(request)))


def take_answer(store: LogStore, partition: str, asked: LeftRequest, more: int, timeout: float) -> dict[str, str]:
    """Waits for the answer to a request; ``more`` others are left behind it.

    Raises:
        LogUnavailableError: no answer came for ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while (answer := store.take_answer(partition, asked.request_id)) is None:
        if time.monotonic() > deadline:
            from kainite.owner.expiry import EXPIRES_S

            others = f" (nor for {more} more)" if more else ""
            raise LogUnavailableError(
                f"no answer for {asked.about}{others} within {timeout:g} s: is a daemon running for this log, "
                f"partition {partition}? The requests stay in the log's table, and a daemon that owns the log within "
                f"{spoken(EXPIRES_S)} carries them out"
            )
        time.sleep(POLL_SECONDS)
    return dict(answer)
