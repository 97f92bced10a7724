"""The lease table: items, and conditional writes in DynamoDB's expressions, as far as Kainite writes them.

:class:`SimTable` is the table. :class:`SimDynamoDB` is boto3's client in one process.
"""

# ruff: noqa: N803 - the arguments are DynamoDB's
from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from simulation.faults import Effects, Faults
from simulation.loop import Process

Item = dict[str, Any]


class SimTable:
    """The items by their key, which is ``leaseKey``."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}

    def put(self, item: Item, condition: str | None) -> dict[str, Any]:
        key = item["leaseKey"]["S"]
        self._check(self.items.get(key), condition, {}, {})
        self.items[key] = dict(item)
        return {}

    def update(self, key: str, update: str, condition: str, values: Item, names: dict[str, str]) -> dict[str, Any]:
        old = self.items.get(key)
        self._check(old, condition, values, names)
        new = dict(old) if old is not None else {"leaseKey": {"S": key}}
        for clause, terms in _clauses(update):
            for term in terms:
                _change(new, clause, term, values, names)
        self.items[key] = new
        return {"Attributes": dict(new)}

    def _check(self, item: Item | None, condition: str | None, values: Item, names: dict[str, str]) -> None:
        terms = condition.split(" AND ") if condition else []
        if not all(_holds(item or {}, term.strip(), values, names) for term in terms):
            response: Any = {
                "Error": {"Code": "ConditionalCheckFailedException", "Message": "the condition does not hold"}
            }
            response |= {"Item": dict(item)} if item is not None else {}
            raise ClientError(response | {"ResponseMetadata": {"RetryAttempts": 0}}, "Write")


def _holds(item: Item, term: str, values: Item, names: dict[str, str]) -> bool:
    if found := re.fullmatch(r"attribute_(not_)?exists\((\S+)\)", term):
        return (names.get(found[2], found[2]) in item) is not bool(found[1])
    name, _, value = term.partition(" = ")
    return bool(item.get(names.get(name, name)) == values[value])


def _clauses(update: str) -> list[tuple[str, list[str]]]:
    parts = re.split(r"\b(SET|REMOVE|ADD)\b", update)[1:]
    return [
        (clause, [term.strip() for term in terms.split(",")])
        for clause, terms in zip(parts[::2], parts[1::2], strict=True)
    ]


def _change(item: Item, clause: str, term: str, values: Item, names: dict[str, str]) -> None:
    if clause == "REMOVE":
        item.pop(names.get(term, term), None)
        return
    name, value = term.split(" = ") if clause == "SET" else term.split()
    name = names.get(name, name)
    if clause == "ADD":
        item[name] = {"N": str(int(item.get(name, {"N": "0"})["N"]) + int(values[value]["N"]))}
    else:
        item[name] = values[value]


class SimDynamoDB:
    """boto3's DynamoDB client, in one process, for the one table that there is.

    Args:
        table: the table.
        faults: of the run.
        process: whose client it is.
        worker: under what name the process holds leases.
        broken: is told when the process stores a checkpoint of a lease that another worker holds.
    """

    def __init__(
        self, table: SimTable, faults: Faults, process: Process, worker: str, broken: Callable[[str], None]
    ) -> None:
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

    def delete_item(self, *, Key: Item, **_: Any) -> dict[str, Any]:
        return self._call("delete", lambda: {"gone": self._table.items.pop(Key["leaseKey"]["S"], None)})

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

    def _call(self, name: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return self._effects.call(name, act)


class _AbsentError(Exception):
    """Never raised: the table is there."""


def _unanswered(name: str) -> Exception:
    return ReadTimeoutError(endpoint_url=f"dynamodb.{name}")
