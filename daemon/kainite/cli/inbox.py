"""Requests to the log's owner through the inbox in the log's table, and the owner's answers."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kainite.base.errors import LogUnavailableError
from kainite.store.dynamodb import DynamoDBStore

POLL_SECONDS: Final = 0.1


@dataclass(slots=True)
class LeftRequest:
    """A request that was left in the inbox, and what it is about."""

    about: str
    request_id: str


def leave(store: DynamoDBStore, partition: str, about: str, request: Mapping[str, str]) -> LeftRequest:
    """Leaves a request, with the name of who asks."""
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    return LeftRequest(about, store.put_request(partition, {**request, "by": by}))


def take_answer(store: DynamoDBStore, partition: str, asked: LeftRequest, more: int, timeout: float) -> dict[str, str]:
    """Waits for the answer to a request; ``more`` others are left behind it.

    Raises:
        LogUnavailableError: no answer came for ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while (answer := store.take_answer(partition, asked.request_id)) is None:
        if time.monotonic() > deadline:
            others = f" (nor for {more} more)" if more else ""
            raise LogUnavailableError(
                f"no answer for {asked.about}{others} within {timeout:g} s: is a daemon running for this log, "
                f"partition {partition}? The requests stay in the log's table, and the next daemon carries them out"
            )
        time.sleep(POLL_SECONDS)
    return dict(answer)
