"""Asks DynamoDB for the tables that a file needs: there, with the right keys, and what the role may do with them.

A right to write is asked for by a write whose condition never holds, which IAM judges before DynamoDB does; the right
to write batches by the deletion of a key that nobody writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kainite.aws.dynamodb import text
from kainite.aws.failures import Failure, classify
from kainite.doctor.aws_calls import refused, rights
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.log.state.outcomes import outcomes_partition
from kainite.settings import Settings
from kainite.store.dynamodb_items import key, slots_key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_PROBE: Final = "kainite-doctor"
"""A key that no item has."""

_LEASES: Final = (("leaseKey", "HASH"),)
_TWO_KEYS: Final = (("p", "HASH"), ("s", "RANGE"))

Calls = dict[str, Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class NeededTable:
    """A table, as a command needs it.

    Attributes:
        area: where its findings belong.
        name: the table's.
        keys: its key attributes, all of them texts, each with its kind.
        policy: the policy of docs/aws/iam that allows the calls.
        calls: makes the calls that the command will make.
    """

    area: str
    name: str
    keys: Sequence[tuple[str, str]]
    policy: str
    calls: Callable[[DynamoDBClient, str], Calls]


def lease_table(settings: Settings) -> NeededTable:
    """Returns the table of leases, as a daemon needs it."""
    return NeededTable("lease table", settings.leases.table, _LEASES, "worker", _of_leases)


def log_of_the_owner(settings: Settings) -> NeededTable:
    """Returns the log's table, as its owner needs it."""
    calls = partial(_of_the_owner, partition=settings.log.partition)
    return NeededTable("log", settings.log.table, _TWO_KEYS, "log", calls)


def log_of_the_apply_job(settings: Settings) -> NeededTable:
    """Returns the log's table, as the apply job needs it: entries to read, outcomes to write."""
    calls = partial(_of_the_apply_job, partition=settings.log.partition)
    return NeededTable("log", settings.log.table, _TWO_KEYS, "apply", calls)


def fleet_table(settings: Settings) -> NeededTable:
    """Returns the fleet's table, as a daemon needs it."""
    return NeededTable("fleet", settings.fleet.table, _TWO_KEYS, "duties", _of_the_fleet)


def look_at_table(dynamodb: DynamoDBClient, needed: NeededTable) -> Iterator[DoctorFinding]:
    """Yields what is found of a table."""
    area, name = needed.area, needed.name
    try:
        table = dynamodb.describe_table(TableName=name)["Table"]
    except Exception as error:
        if classify(error) is Failure.GONE:
            yield warned(area, f"table {name} does not exist",
                         "it is made at the start, where the role has docs/aws/iam/create-tables.json; or look at"
                         " applicationName and regionName")  # fmt: skip
        else:
            yield refused(area, "dynamodb:DescribeTable", error, needed.policy)
        return
    problem = _problem(table, needed.keys)
    if problem is not None:
        yield wrong(area, f"table {name} {problem}", "name another table, or delete this one where nobody uses it")
        return
    yield well(area, f"table {name} has the right keys")
    yield from rights(area, f"table {name}", needed.calls(dynamodb, name), needed.policy)


def look_at_expiry(dynamodb: DynamoDBClient, table: str) -> Iterator[DoctorFinding]:
    """Yields whether the fleet's history expires."""
    try:
        found = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    except Exception as error:
        if classify(error) is Failure.DENIED:  # the look at the table tells of anything else
            yield refused("fleet", "dynamodb:DescribeTimeToLive", error, "duties")
        return
    if found.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        yield warned("fleet", f"lines of history in {table} never expire",
                     f"aws dynamodb update-time-to-live --table-name {table}"
                     " --time-to-live-specification Enabled=true,AttributeName=x")  # fmt: skip


def _problem(table: Mapping[str, Any], keys: Sequence[tuple[str, str]]) -> str | None:
    """Returns why a table cannot be used; None where it can."""
    types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions", ())}
    schema = [(each["AttributeName"], each["KeyType"]) for each in table.get("KeySchema", ())]
    found = ", ".join(f"{name} ({kind}, {types.get(name, '?')})" for name, kind in schema)
    if sorted(schema) != sorted(keys) or any(types.get(name) != "S" for name, _ in keys):
        needed = ", ".join(f"{name} ({kind}, S)" for name, kind in keys)
        return f"has the key {found}, and {needed} is needed"
    status = table.get("TableStatus", "ACTIVE")
    return None if status in ("ACTIVE", "UPDATING") else f"is {status}"


def _of_leases(dynamodb: DynamoDBClient, table: str) -> Calls:
    probe = {"leaseKey": text(_PROBE)}
    return {
        "dynamodb:Scan": lambda: dynamodb.scan(TableName=table, Limit=1),
        "dynamodb:GetItem": lambda: dynamodb.get_item(TableName=table, Key=probe),
        "dynamodb:PutItem": partial(_put, dynamodb, table, probe, "leaseKey"),
        "dynamodb:UpdateItem": partial(_update, dynamodb, table, probe, "leaseKey"),
        "dynamodb:DeleteItem": partial(_delete, dynamodb, table, probe, "leaseKey"),
    }


def _of_the_owner(dynamodb: DynamoDBClient, table: str, partition: str) -> Calls:
    head = f"{partition}#H"
    return {
        "dynamodb:GetItem": lambda: dynamodb.get_item(TableName=table, Key=key(head, "head")),
        "dynamodb:Query": partial(_query, dynamodb, table, slots_key(partition, None)),
        "dynamodb:PutItem": partial(_put, dynamodb, table, key(head, _PROBE), "p"),
        "dynamodb:UpdateItem": partial(_update, dynamodb, table, key(f"{partition}#Q", _PROBE), "p"),
        "dynamodb:BatchWriteItem": partial(_delete_nothing, dynamodb, table, key(f"{partition}#N", _PROBE)),
    }


def _of_the_apply_job(dynamodb: DynamoDBClient, table: str, partition: str) -> Calls:
    outcomes = outcomes_partition(partition)
    return {
        "dynamodb:GetItem": lambda: dynamodb.get_item(TableName=table, Key=key(f"{partition}#H", "head")),
        "dynamodb:Query": partial(_query, dynamodb, table, slots_key(partition, None)),
        "dynamodb:PutItem": partial(_put, dynamodb, table, key(f"{outcomes}#H", _PROBE), "p"),
        "dynamodb:BatchWriteItem": partial(_delete_nothing, dynamodb, table, key(slots_key(outcomes, None), _PROBE)),
    }


def _of_the_fleet(dynamodb: DynamoDBClient, table: str) -> Calls:
    probe = key("fleet", _PROBE)
    return {
        "dynamodb:GetItem": lambda: dynamodb.get_item(TableName=table, Key=probe),
        "dynamodb:Query": partial(_query, dynamodb, table, "fleet"),
        "dynamodb:PutItem": partial(_put, dynamodb, table, probe, "p"),
        "dynamodb:DeleteItem": partial(_delete, dynamodb, table, probe, "p"),
    }


def _never(attribute: str) -> str:
    """Returns a condition that holds for no item, there or not."""
    return f"attribute_exists({attribute}) AND attribute_not_exists({attribute})"


def _query(dynamodb: DynamoDBClient, table: str, p: str) -> Any:
    return dynamodb.query(
        TableName=table, Limit=1, KeyConditionExpression="p = :p", ExpressionAttributeValues={":p": text(p)}
    )


def _put(dynamodb: DynamoDBClient, table: str, item: Any, attribute: str) -> Any:
    return dynamodb.put_item(TableName=table, Item=item, ConditionExpression=_never(attribute))


def _update(dynamodb: DynamoDBClient, table: str, probe: Any, attribute: str) -> Any:
    return dynamodb.update_item(
        TableName=table, Key=probe, ConditionExpression=_never(attribute), UpdateExpression="SET z = :z",
        ExpressionAttributeValues={":z": text("")},
    )  # fmt: skip


def _delete(dynamodb: DynamoDBClient, table: str, probe: Any, attribute: str) -> Any:
    return dynamodb.delete_item(TableName=table, Key=probe, ConditionExpression=_never(attribute))


def _delete_nothing(dynamodb: DynamoDBClient, table: str, probe: Any) -> Any:
    return dynamodb.batch_write_item(RequestItems={table: [{"DeleteRequest": {"Key": probe}}]})
