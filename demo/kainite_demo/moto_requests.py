"""Lets moto answer one DynamoDB request after the other, as each of them counts on.

moto's server answers each request on a thread of its own. A transaction that fails puts back a copy of its tables,
which it has made at its beginning, and so would undo what other requests have written since; a copy of a table that
another request changes breaks off. Nothing in moto's DynamoDB waits, so to take turns costs no time.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.dynamodb.responses import DynamoHandler

_ONE_AT_A_TIME = threading.RLock()
_call_action = DynamoHandler.call_action


def _in_turn(self: DynamoHandler) -> Any:
    """Answers a request as moto does, when no other one is being answered."""
    with _ONE_AT_A_TIME:
        return _call_action(self)


def install() -> None:
    """Makes all DynamoDB requests in this process, from now on, take turns."""
    DynamoHandler.call_action = _in_turn  # type: ignore[method-assign]
