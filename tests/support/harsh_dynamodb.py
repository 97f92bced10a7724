"""A DynamoDB client whose service does whatever its documentation allows, and no double ever does.

* **Short pages.** "A single Query operation will read up to […] a maximum of 1 MB of data": here one item a page.
* **Stale reads.** "Eventually consistent reads […] might not reflect the results of a recently completed write
  operation": here a Query or GetItem without ConsistentRead never has what this client put last.
* **Unprocessed items.** "If any requested operations fail because the table's provisioned throughput is exceeded or an
  internal processing failure occurs, the failed operations are returned in the UnprocessedItems": here all but one.

And another client, which the network treats badly: **lost answers**. Whatever it writes is sent, done, and its answer
lost; then boto3 sends it again, as it does by itself.

Where a failed condition does not bring the item with it (ReturnValuesOnConditionCheckFailure), DynamoDB Local is as
harsh by itself. All quotations: Amazon DynamoDB, *API Reference* and *Developer Guide*.
"""

from __future__ import annotations

from typing import Any

from botocore.httpsession import URLLib3Session

Parameters = dict[str, Any]

KEYS = ("p", "s", "leaseKey", "key", "wid")
"""Of all tables that Kainite uses."""


def make_harsh(client: Any) -> Any:
    """Makes a boto3 client harsh from now on, and returns it. For one thread at a time."""
    events = client.meta.events
    stale = _Stale()
    for operation in ("Query", "Scan"):
        events.register(f"provide-client-params.dynamodb.{operation}", _ask_for_one)
    events.register("provide-client-params.dynamodb.PutItem", stale.note)
    for operation in ("Query", "GetItem"):
        events.register(f"provide-client-params.dynamodb.{operation}", _remember_strength)
        events.register(f"after-call.dynamodb.{operation}", stale.hide)
    events.register("provide-client-params.dynamodb.BatchWriteItem", _hold_back)
    events.register("after-call.dynamodb.BatchWriteItem", _give_back)
    return client


def lose_first_answers(client: Any) -> Any:
    """Makes each write of a boto3 client reach the service twice, the second answer counting; returns the client."""
    network = URLLib3Session()

    def send_and_forget(request: Any, **_: Any) -> None:
        network.send(request)

    for operation in ("PutItem", "UpdateItem", "BatchWriteItem"):
        client.meta.events.register(f"before-send.dynamodb.{operation}", send_and_forget)
    return client


def _ask_for_one(params: Parameters, **_: Any) -> Parameters:
    return {**params, "Limit": 1}


def _remember_strength(params: Parameters, context: dict[str, Any], **_: Any) -> None:
    context["kainite_strong"] = params.get("ConsistentRead", False)


class _Stale:
    """The item put last is not to be seen by weak reads."""

    def __init__(self) -> None:
        self._last: Parameters = {}

    def note(self, params: Parameters, **_: Any) -> None:
        self._last = params["Item"]

    def hide(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if context["kainite_strong"]:
            return
        if "Items" in parsed:
            parsed["Items"] = [item for item in parsed["Items"] if not self._is_last(item)]
        elif "Item" in parsed and self._is_last(parsed["Item"]):
            del parsed["Item"]

    def _is_last(self, item: Parameters) -> bool:
        keys = [name for name in KEYS if name in item]
        return bool(keys) and all(item[name] == self._last.get(name) for name in keys)


def _hold_back(params: Parameters, context: dict[str, Any], **_: Any) -> Parameters:
    [(table, requests)] = params["RequestItems"].items()
    context["kainite_held_back"] = (table, requests[1:])
    return {**params, "RequestItems": {table: requests[:1]}}


def _give_back(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    table, rest = context["kainite_held_back"]
    if rest:
        parsed["UnprocessedItems"] = {table: rest}
