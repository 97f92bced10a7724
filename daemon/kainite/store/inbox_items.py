"""The requests to a log partition's owner, and the owner's answers, as DynamoDB's items.

=========  ===========================================  ==============================================================
state      the item                                     left by
=========  ===========================================  ==============================================================
asked      ``r``, the request                           the owner's answer
answered   ``r`` and ``a``, the answer beside it        whoever asked takes it, which deletes the item; the owner
                                                        deletes all but the latest ``ANSWERS_KEPT``
=========  ===========================================  ==============================================================

Ids begin with the time, so that the oldest request is read first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from kainite.aws.dynamodb import text_map, text_map_of
from kainite.log.contract import ANSWERS_KEPT, REQUESTS_AT_ONCE
from kainite.store.dynamodb_items import key
from kainite.store.log_table import LogTable


class InboxItems:
    """Reads and writes the inboxes of log partitions.

    Args:
        table: the log's table.
        deletes: whether a reader deletes answers that nobody takes: who only looks may have no right to delete.
    """

    def __init__(self, table: LogTable, *, deletes: bool) -> None:
        self._table = table
        self._deletes = deletes

    def put(self, partition: str, request: Mapping[str, str]) -> str:
        """Puts a request; returns its id."""
        request_id = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}"
        self._table.put({**key(f"{partition}#Q", request_id), "r": text_map(request)})
        return request_id

    def read(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Returns the oldest requests without an answer: (id, request)."""
        answered: list[str] = []
        requests: list[tuple[str, Mapping[str, str]]] = []
        for item in self._table.query(f"{partition}#Q", fields="p, s, r, a", strong=True):
            if "a" in item:
                answered.append(item["s"]["S"])
            elif "r" in item:
                requests.append((item["s"]["S"], text_map_of(item, "r")))
            if len(requests) == REQUESTS_AT_ONCE:
                break
        # The latest answers stay for their clients; the others, whose clients are gone, are deleted.
        if self._deletes:
            self._table.delete(f"{partition}#Q", answered[:-ANSWERS_KEPT])
        return requests

    def answer(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        """Puts an answer beside its request."""
        self._table.set(f"{partition}#Q", request_id, "a", text_map(answer))

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        """Returns an answer and deletes it with its request; None while there is none."""
        item = self._table.get(f"{partition}#Q", request_id)
        if item is None or "a" not in item:
            return None
        self._table.delete(f"{partition}#Q", [request_id])
        return text_map_of(item, "a")
