"""Makes moto carry out DynamoDB's writes with conditions alone: while it does, it carries out no other request.

moto's server answers each request on a thread of its own. A transaction that fails puts back a copy of its tables,
which it has made at its beginning, and so would undo what other requests have written since; a copy of a table that
another request changes breaks off. A condition is looked at first and the item written then, so that two rivals for one
item may both win. No request in moto's DynamoDB waits for another part, so no request waits for long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from moto.dynamodb.responses import DynamoHandler

_ALONE: Final = frozenset({"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem"})
_call_action = DynamoHandler.call_action


class _Turns:
    """Lets one request be carried out alone, and others beside each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alone = False
        self._others = 0

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until no other request is under way, and lets none begin."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: self._others == 0)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        """Waits until no request is alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._others += 1
        try:
            yield
        finally:
            with self._changed:
                self._others -= 1
                self._changed.notify_all()


_TURNS = _Turns()


def _in_turn(self: DynamoHandler) -> Any:
    """Answers a request as moto does, when its turn has come."""
    with _TURNS.alone() if self._get_action() in _ALONE else _TURNS.beside_others():
        return _call_action(self)


def install() -> None:
    """Makes all writes that may have a condition, in this process and from now on, be alone."""
    DynamoHandler.call_action = _in_turn  # type: ignore[method-assign]
