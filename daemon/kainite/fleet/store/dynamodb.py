"""The coordination table in DynamoDB: key ``p`` (hash, S) and ``s`` (range, S).

=======================  =========================  ==========================================================
``p``                    ``s``                      attributes
=======================  =========================  ==========================================================
``fleet``                a record's key             ``v`` version, ``d`` the record as JSON; ``g`` generation
                                                    (the leader's lease alone, 0 when it was given back)
``history/KIND/NAME``    time and a random part     ``d`` the line as JSON, ``x`` when it expires (TTL, seconds)
=======================  =========================  ==========================================================

A commit of one change without history is one PutItem (a ping is one write unit); any other commit is one
TransactWriteItems. A PutItem whose condition failed and that finds its own version in the item was sent twice, and
has succeeded; a transaction's token does the same for transactions.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from kainite.aws.dynamodb import ConditionFailedError, answer, make_table, number, pages, text
from kainite.aws.failures import Failure
from kainite.base.errors import FleetError, FleetUnavailableError
from kainite.base.logs import event
from kainite.fleet.model.records import HistoryLine, Lead, Picture, Record, Subject
from kainite.fleet.store.contract import CheckRecord, DeleteRecord, FleetCommit, PutRecord, RecordChange
from kainite.fleet.store.items import LEAD, event_of, key_of, picture_of, record_of, stamped, text_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

T = TypeVar("T")

_WRITES: dict[type[RecordChange], str] = {
    PutRecord: "Put",
    DeleteRecord: "Delete",
    CheckRecord: "ConditionCheck",
}
FLEET = "fleet"
WAIT_S = 120
DAY_S = 86_400


class DynamoDBFleetStore:
    """The table ``name``; threads may share it.

    Args:
        dynamodb: a client.
        name: the table's.
        history_days: how long lines of history are kept.
    """

    def __init__(self, dynamodb: DynamoDBClient, name: str, history_days: int = 30) -> None:
        self._dynamodb = dynamodb
        self._name = name
        self._history_days = history_days

    def create(self) -> None:
        definition: dict[str, Any] = {
            "TableName": self._name,
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in ("p", "s")],
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        make_table(self._dynamodb, definition, attempts=WAIT_S, translate=self._error)
        try:
            self._keep_expiring()
        except FleetError as error:
            event(logger, logging.WARNING, "histories may be kept for ever: let the table's attribute x expire, or"
                  " allow dynamodb:DescribeTimeToLive and dynamodb:UpdateTimeToLive", error=error)  # fmt: skip

    def read(self) -> Picture:
        found = (
            record_of(item["s"]["S"], item["v"]["S"], item["d"]["S"])
            for item in self._query(FLEET, ConsistentRead=True)
        )
        return picture_of(record for record in found if record is not None)

    def commit(self, commit: FleetCommit) -> bool:
        try:
            if len(commit.changes) == 1 and not commit.events and commit.led is None:
                [change] = commit.changes
                return self._alone(change)
            return self._together(commit)
        except ConditionFailedError:
            return False

    def history(self, subject: Subject, name: str, limit: int) -> tuple[HistoryLine, ...]:
        found: list[HistoryLine] = []
        for item in self._query(f"history/{subject}/{name}", ScanIndexForward=False):
            found.append(event_of(item["d"]["S"]))
            if len(found) >= limit:
                break
        return tuple(found)

    def _alone(self, change: RecordChange) -> bool:
        request = self._request(change)
        if not isinstance(change, PutRecord):
            self._call("DeleteItem", lambda: self._dynamodb.delete_item(**request))
            return True
        try:
            self._call(
                "PutItem", lambda: self._dynamodb.put_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
            )
        except ConditionFailedError as failed:
            stands = failed.item if failed.item is not None else self._item(key_of(change.record))
            return stands is not None and stands.get("v") == request["Item"]["v"]
        return True

    def _together(self, commit: FleetCommit) -> bool:
        writes: list[Any] = [{_WRITES[type(change)]: self._request(change)} for change in commit.changes]
        writes += [{"Put": {"TableName": self._name, "Item": self._line(stamped(event))}} for event in commit.events]
        if commit.led is not None and not any(isinstance(change.record, Lead) for change in commit.changes):
            writes.append({"ConditionCheck": self._check(commit.led)})
        self._call("TransactWriteItems", lambda: self._transact(writes))
        return True

    def _transact(self, writes: list[Any]) -> None:
        try:
            self._dynamodb.transact_write_items(TransactItems=writes)
        except self._dynamodb.exceptions.TransactionCanceledException as cancelled:
            _raise_reason(cancelled)

    def _request(self, change: RecordChange) -> dict[str, Any]:
        record = change.record
        request: dict[str, Any] = {"TableName": self._name, "ConditionExpression": "attribute_not_exists(v)"}
        if record.version:
            request["ConditionExpression"] = "v = :v"
            request["ExpressionAttributeValues"] = {":v": text(record.version)}
        return request | ({"Item": _item(record)} if isinstance(change, PutRecord) else {"Key": _key(key_of(record))})

    def _check(self, led: Lead) -> dict[str, Any]:
        return {
            "TableName": self._name,
            "Key": _key(LEAD),
            "ConditionExpression": "g = :g",
            "ExpressionAttributeValues": {":g": number(led.generation)},
        }

    def _line(self, event: HistoryLine) -> dict[str, Any]:
        expires = int(time.time()) + self._history_days * DAY_S
        return {
            "p": text(f"history/{event.subject}/{event.name}"),
            "s": text(f"{event.at:015d}/{secrets.token_hex(6)}"),
            "d": text(text_of(event)),
            "x": number(expires),
        }

    def _item(self, key: str) -> Mapping[str, Any] | None:
        request: dict[str, Any] = {"TableName": self._name, "Key": _key(key), "ConsistentRead": True}
        return self._call("GetItem", lambda: self._dynamodb.get_item(**request)).get("Item")

    def _query(self, partition: str, **more: Any) -> Iterator[Mapping[str, Any]]:
        request = {
            "TableName": self._name,
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": text(partition)},
            **more,
        }

        def query(**page: Any) -> Any:
            return self._call("Query", lambda: self._dynamodb.query(**page))

        for page in pages(query, request):
            yield from page["Items"]

    def _keep_expiring(self) -> None:
        """Turns the expiry of histories on where it is off: the table's maker may have died before that."""
        if self._expires():
            return
        try:
            self._call("UpdateTimeToLive", self._expire)
        except FleetError:
            if not self._expires():  # another worker was faster
                raise

    def _expires(self) -> bool:
        def describe() -> str:
            found = self._dynamodb.describe_time_to_live(TableName=self._name)["TimeToLiveDescription"]
            return found.get("TimeToLiveStatus", "DISABLED")

        return self._call("DescribeTimeToLive", describe) in ("ENABLING", "ENABLED")

    def _expire(self) -> None:
        expiry: Any = {"Enabled": True, "AttributeName": "x"}
        self._dynamodb.update_time_to_live(TableName=self._name, TimeToLiveSpecification=expiry)

    def _call(self, operation: str, call: Callable[[], T]) -> T:
        return answer(operation, call, self._error)

    def _error(self, operation: str, failure: Failure, error: Exception) -> Exception:
        where = f"fleet table {self._name!r}: {operation}"
        if failure.is_retryable:
            return FleetUnavailableError(f"{where} failed for now: {error}")
        if failure is Failure.GONE:
            return FleetError(
                f"fleet table {self._name!r} does not exist: check applicationName, fleetTableName and the region;"
                " a daemon with fleet=true makes it when it starts"
            )
        return FleetError(f"{where} is refused: {error}")


def _item(record: Record) -> dict[str, Any]:
    item = {**_key(key_of(record)), "v": text(secrets.token_hex(8)), "d": text(text_of(record))}
    if isinstance(record, Lead):
        item["g"] = number(record.generation if record.worker else 0)
    return item


def _key(key: str) -> dict[str, Any]:
    return {"p": text(FLEET), "s": text(key)}


def _raise_reason(cancelled: ClientError) -> None:
    """Raises the error of a cancelled transaction: a condition that failed, or a conflict or a limit that passes."""
    response: Mapping[str, Any] = cancelled.response
    codes = {reason.get("Code") for reason in response.get("CancellationReasons", ())} - {None, "None"}
    if "ConditionalCheckFailed" in codes:
        raise ConditionFailedError(None, retried=False) from cancelled
    if codes <= {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}:
        raise FleetUnavailableError(f"a write of the fleet table met another one: {cancelled}") from cancelled
    raise cancelled
