"""The lease table: items, and conditional writes in DynamoDB's expressions, as far as Kainite writes them.

:class:`SimTable` is the table. :class:`SimDynamoDB` is boto3's client in one process.
"""

# ruff: noqa: N803 - the arguments are DynamoDB's
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from simulation.expressions import Item, changed, check
from simulation.faults import Effects, Faults
from simulation.loop import Process


class SimTable:
    """The items by their key, which is ``leaseKey``."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}

    def put(self, item: Item, condition: str | None) -> dict[str, Any]:
        key = item["leaseKey"]["S"]
        check(self.items.get(key), condition, {})
        self.items[key] = dict(item)
        return {}

    def delete(self, key: str, condition: str | None, values: Item | None) -> dict[str, Any]:
        check(self.items.get(key), condition, values or {})
        self.items.pop(key, None)
        return {}

    def update(self, key: str, update: str, condition: str, values: Item, names: dict[str, str]) -> dict[str, Any]:
        old = self.items.get(key)
        check(old, condition, values, names)
        self.items[key] = changed(old or {"leaseKey": {"S": key}}, update, values, names)
        return {"Attributes": dict(self.items[key])}


class SimDynamoDB:
    """boto3's DynamoDB client, in one process, for the one table that there is.

    Args:
        table: the table.
        faults: of the run.
        process: whose client it is.
        worker: under what name the process holds leases.
        broken: is told when the process stores a checkpoint of a lease that another worker holds.
        judge: is told the process's name, and a lease before and after each change of it.
    """

    def __init__(
        self, table: SimTable, faults: Faults, process: Process, worker: str, broken: Callable[[str], None],
        judge: Callable[[str, Item, Item], None],
    ) -> None:  # fmt: skip
        self._judged = partial(judge, process.name)
        self._table = table
        self._worker = worker
        self._broken = broken
        self._effects = Effects(faults, process, "leases", _unanswered)
        self.exceptions = SimpleNamespace(
            ResourceNotFoundException=_AbsentError, ResourceInUseException=_AbsentError,
            ConditionalCheckFailedException=ClientError,
        )  # fmt: skip

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": {"TableStatus": "ACTIVE"}}

    def scan(self, **_: Any) -> dict[str, Any]:
        return self._call("scan", lambda: {"Items": [dict(item) for item in self._table.items.values()]})

    def get_item(self, *, Key: Item, **_: Any) -> dict[str, Any]:
        def get() -> dict[str, Any]:
            item = self._table.items.get(Key["leaseKey"]["S"])
            return {} if item is None else {"Item": dict(item)}

        return self._call("get", get)

    def put_item(self, *, Item: Item, ConditionExpression: str | None = None, **_: Any) -> dict[str, Any]:
        return self._call("put", lambda: self._table.put(Item, ConditionExpression))

    def delete_item(
        self, *, Key: Item, ConditionExpression: str | None = None, ExpressionAttributeValues: Item | None = None,
        **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        return self._call(
            "delete", lambda: self._table.delete(Key["leaseKey"]["S"], ConditionExpression, ExpressionAttributeValues)
        )

    def update_item(
        self, *, Key: Item, UpdateExpression: str, ConditionExpression: str = "",
        ExpressionAttributeValues: Item | None = None, ExpressionAttributeNames: dict[str, str] | None = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        sent: list[int] = []

        def update() -> dict[str, Any]:
            sent.append(1)
            before = self._table.items.get(Key["leaseKey"]["S"], {})
            try:
                answer = self._table.update(
                    Key["leaseKey"]["S"], UpdateExpression, ConditionExpression, ExpressionAttributeValues or {},
                    ExpressionAttributeNames or {},
                )  # fmt: skip
            except ClientError as error:
                error.response["ResponseMetadata"]["RetryAttempts"] = len(sent) - 1
                raise
            self._judge(before, answer["Attributes"])
            return answer

        return self._call("update", update)

    def _judge(self, before: Item, after: Item) -> None:
        holders = [before[name]["S"] for name in ("leaseOwner", "checkpointOwner") if name in before]
        if before.get("checkpoint") != after.get("checkpoint") and holders and self._worker not in holders:
            self._broken(f"{self._worker} stores a checkpoint of {before['leaseKey']['S']}, which {holders[0]} holds")

        self._judged(before, after)

    def _call(self, name: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return self._effects.call(name, act)


class _AbsentError(Exception):
    """Never raised: the table is there."""


def _unanswered(name: str) -> Exception:
    return ReadTimeoutError(endpoint_url=f"dynamodb.{name}")
