"""Differences of DynamoDB's doubles from what AWS documents, and Kainite's measures against each.

======================  ============================  ==================  ==================  =========================
what                    documented                    moto                DynamoDB Local      Kainite
======================  ============================  ==================  ==================  =========================
item in a failed        returned with                 as documented       never               reads it, strongly, where
condition               ReturnValuesOn…=ALL_OLD                                               it is not returned
item size               up to 409,600 bytes           up to 405,000       as documented       380,000 at most
BatchWriteItem          up to 25 requests             any number          as documented       25 at a time
transaction             up to 100 items               as documented       up to 10            10 at most
page with Limit         LastEvaluatedKey also where   only where there    as documented       asks for one item, or
                        nothing follows               is more                                 follows until it is absent
page projected          1 MB before projection        as documented       as documented       follows LastEvaluatedKey
empty text, binary      allowed (since May 2020)      as documented       refused             writes none
number                  38 digits, zeros trimmed      any, as written     as documented       19 digits; reads decimals
unused :value           refused                       accepted            as documented       uses each
BETWEEN high AND low    refused                       nothing found       as documented       does not ask
capacity consumed       by size                       1                   as documented       computes it in benchmarks
table just made         CREATING                      ACTIVE              ACTIVE              waits until it is ACTIVE
point-in-time recovery  there                         as documented       unknown operation   an error of DynamoDB's
deletion protection     there                         as documented       ignored             asks for it
weak read               may lack the latest write     never does          never does          reads strongly where that
                                                                                              matters (harsh double)
unprocessed items       a part may be left over       never are           never are           sends them again (harsh)
======================  ============================  ==================  ==================  =========================

Documented: *DynamoDB API Reference* and *Developer Guide*, "Service, account, and table quotas". Not here, since
Kainite uses none of it: streams, filters, indices, PartiQL. What a test below no longer finds is to be put right in
both tables. The contract suites (``on_each_double``) run on all of them, and on a client that makes the last two rows
and one-item pages happen (:mod:`support.harsh_dynamodb`). moto's transactions are alone here, since one that
fails there undoes what others write meanwhile (:mod:`kainite_demo.moto_requests`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kainite.store.dynamodb import DynamoDBStore
from support.dynamodb_doubles import DOUBLES, Double, Doubles
from support.names import unique

REFUSED = "ValidationException"


class Table:
    """A table with the log's keys."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.name = unique("doubles")
        DynamoDBStore(client, self.name).create()

    def put(self, s: str = "1", /, **attributes: Any) -> Any:
        return self.client.put_item(TableName=self.name, Item={"p": {"S": "p"}, "s": {"S": s}, **attributes})

    def query(self, condition: str = "p = :p", values: dict[str, Any] | None = None, **more: Any) -> Any:
        given = {":p": {"S": "p"}, **(values or {})}
        return self.client.query(
            TableName=self.name, KeyConditionExpression=condition, ExpressionAttributeValues=given, **more
        )


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the table: what a look at it gives as documented, on moto, on DynamoDB Local."""

    what: str
    look: Callable[[Table], object]
    documented: object
    moto: object
    local: object

    def on(self, double: Double) -> object:
        if double is Double.LOCALSTACK and self.what in MADE_UP_FOR:
            return self.documented
        return self.moto if double is Double.MOTO else self.local


def failed_condition(table: Table) -> object:
    table.put(v={"N": "1"})
    with pytest.raises(ClientError) as failed:
        table.client.put_item(
            TableName=table.name,
            Item={"p": {"S": "p"}, "s": {"S": "1"}},
            ConditionExpression="attribute_not_exists(p)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    return "Item" in failed.value.response


def item_of(size: int) -> Callable[[Table], object]:
    """Tells whether an item of so many bytes is taken: the names and values of its keys are five bytes."""
    return lambda table: taken(lambda: table.put(d={"B": b"x" * (size - 5)}))


def taken(call: Callable[[], object]) -> object:
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "taken"


def batch_of_26(table: Table) -> object:
    requests = [{"DeleteRequest": {"Key": {"p": {"S": "p"}, "s": {"S": str(n)}}}} for n in range(26)]
    return taken(lambda: table.client.batch_write_item(RequestItems={table.name: requests}))


def transaction_of_11(table: Table) -> object:
    puts = [{"Put": {"TableName": table.name, "Item": {"p": {"S": "p"}, "s": {"S": str(n)}}}} for n in range(11)]
    return taken(lambda: table.client.transact_write_items(TransactItems=puts))


def page_that_ends_with_the_last_item(table: Table) -> object:
    table.put()
    return "LastEvaluatedKey" in table.query(Limit=1)


def keys_of_five_large_items(table: Table) -> object:
    for n in range(5):
        table.put(str(n), d={"B": b"x" * 300_000})
    return "LastEvaluatedKey" in table.query(ProjectionExpression="p, s")


def unused_value(table: Table) -> object:
    return taken(
        lambda: table.client.put_item(
            TableName=table.name,
            Item={"p": {"S": "p"}, "s": {"S": "1"}},
            ConditionExpression="attribute_not_exists(p)",
            ExpressionAttributeValues={":unused": {"N": "1"}},
        )
    )


def reversed_bounds(table: Table) -> object:
    values = {":from": {"S": "3"}, ":to": {"S": "1"}}
    return taken(lambda: table.query("p = :p AND s BETWEEN :from AND :to", values))


def stored_number(table: Table) -> object:
    table.put(v={"N": "12.500000"})
    return table.query(ConsistentRead=True)["Items"][0]["v"]["N"]


def capacity_of_30_kb(table: Table) -> object:
    item = {"p": {"S": "p"}, "s": {"S": "1"}, "d": {"B": b"x" * 30_000}}
    answer = table.client.put_item(TableName=table.name, Item=item, ReturnConsumedCapacity="TOTAL")
    return answer["ConsumedCapacity"]["CapacityUnits"]


def table_just_made(table: Table, **settings: Any) -> Any:
    return table.client.create_table(
        TableName=unique("doubles"),
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        **settings,
    )["TableDescription"]


def deletion_protection(table: Table) -> object:
    return bool(table_just_made(table, DeletionProtectionEnabled=True).get("DeletionProtectionEnabled"))


def recovery(table: Table) -> object:
    wanted = {"PointInTimeRecoveryEnabled": True}
    return taken(
        lambda: table.client.update_continuous_backups(TableName=table.name, PointInTimeRecoverySpecification=wanted)
    )


OK = "taken"

MADE_UP_FOR = frozenset({"deletion protection", "point-in-time recovery"})
"""The operations that LocalStack answers itself, in front of its DynamoDB Local."""

FACTS = (
    Fact("a failed condition brings the item", failed_condition, True, True, False),
    Fact("an item of 405,500 bytes", item_of(405_500), OK, REFUSED, OK),
    Fact("an item of 409,600 bytes", item_of(409_600), OK, REFUSED, OK),
    Fact("an item of 409,601 bytes", item_of(409_601), REFUSED, REFUSED, REFUSED),
    Fact("26 requests in a batch", batch_of_26, REFUSED, OK, REFUSED),
    Fact("11 items in a transaction", transaction_of_11, OK, OK, REFUSED),
    Fact("a key to go on from where nothing follows", page_that_ends_with_the_last_item, True, False, True),
    Fact("pages are cut before projection", keys_of_five_large_items, True, True, True),
    Fact("empty text", lambda table: taken(lambda: table.put(v={"S": ""})), OK, OK, REFUSED),
    Fact("empty binary", lambda table: taken(lambda: table.put(v={"B": b""})), OK, OK, REFUSED),
    Fact("an empty set", lambda table: taken(lambda: table.put(v={"SS": []})), REFUSED, REFUSED, REFUSED),
    Fact("39 digits", lambda table: taken(lambda: table.put(v={"N": "1" * 39})), REFUSED, OK, REFUSED),
    Fact("12.500000 stored", stored_number, "12.5", "12.500000", "12.5"),
    Fact("an unused value", unused_value, REFUSED, OK, REFUSED),
    Fact("bounds the wrong way round", reversed_bounds, REFUSED, OK, REFUSED),
    Fact("capacity of 30 KB written", capacity_of_30_kb, 30.0, 1.0, 30.0),
    Fact(
        "a table just made", lambda table: table_just_made(table)["TableStatus"], "CREATING", "ACTIVE", "ACTIVE"
    ),
    Fact("deletion protection", deletion_protection, True, True, False),
    Fact("point-in-time recovery", recovery, OK, OK, "UnknownOperationException"),
)  # fmt: skip


@pytest.mark.parametrize("double", [each for each in DOUBLES if each is not Double.HARSH])
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.what)
def test_what_a_double_does(dynamodb_doubles: Doubles, double: Double, fact: Fact) -> None:
    assert fact.look(Table(dynamodb_doubles.client(double))) == fact.on(double)


def test_no_difference_is_shared_by_all_doubles_but_those_that_a_harsh_client_or_waiting_makes_up_for() -> None:
    nowhere_as_documented = {fact.what for fact in FACTS if fact.documented not in (fact.moto, fact.local)}
    assert nowhere_as_documented == {"a table just made"}
