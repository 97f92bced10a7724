"""A worker follows its fleet's changes of version, on moto's DynamoDB."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from kainite.base.errors import LeaseTableError
from kainite.leases.kcl3.coordinator_items import ClientVersion
from kainite.leases.kcl3.membership import Membership, pause
from kainite.leases.stance import Stance
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import LeaseSettings
from support.names import unique
from support.names_of_all import table_names
from support.waiting import until

ME = "this-worker"


@dataclass
class Tables:
    """An application's tables; ``key`` and ``wid`` are the primary keys of its coordinator items."""

    dynamodb: Any
    name: str
    single: bool

    def create(self) -> None:
        LeaseTable(self.dynamodb, self.name).create()
        if not self.single:
            self._create(self.state_table, "key")
            self._create(self.workers_table, "wid")

    @property
    def state_table(self) -> str:
        return self.name if self.single else f"{self.name}-CoordinatorState"

    @property
    def workers_table(self) -> str:
        return self.name if self.single else f"{self.name}-WorkerMetricStats"

    def agree_on(self, version: ClientVersion) -> None:
        self.put_state("Migration3.0", {"cv": {"S": version}})

    def lead(self, version: str) -> None:
        lock = {"ownerName": {"S": "java"}, "leaseDuration": {"S": "120000"}, "recordVersionNumber": {"S": version}}
        self.put_state("Leader", lock)
        self.report("java", time.time())

    def release(self) -> None:
        key = {"leaseKey" if self.single else "key": {"S": "Leader"}}
        self.dynamodb.delete_item(TableName=self.state_table, Key=key)

    def report(self, worker: str, at: float) -> None:
        item = {"leaseKey" if self.single else "wid": {"S": worker}, "lut": {"N": str(int(at))}}
        self.dynamodb.put_item(TableName=self.workers_table, Item=item)

    def entry(self) -> Any:
        key = {"leaseKey" if self.single else "wid": {"S": ME}}
        return self.dynamodb.get_item(TableName=self.workers_table, Key=key).get("Item")

    def put_state(self, key: str, item: dict[str, Any]) -> None:
        named = {"leaseKey" if self.single else "key": {"S": key}}
        self.dynamodb.put_item(TableName=self.state_table, Item=item | named)

    def _create(self, name: str, key: str) -> None:
        self.dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )


@pytest.fixture(params=[False, True], ids=["split tables", "single table"])
def tables(request: pytest.FixtureRequest, dynamodb: Any) -> Tables:
    return Tables(dynamodb, unique("fleet"), request.param)


@asynccontextmanager
async def member(tables: Tables, **changes: Any) -> AsyncIterator[Membership]:
    """Runs a membership whose poll takes the shortest time."""
    settings = LeaseSettings(tables.name, tables.name, ME, failover=0.1, **changes)
    membership = Membership(tables.dynamodb, settings)
    await membership.begin()
    task = asyncio.create_task(membership.run())
    try:
        yield membership
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture
def denied(moto_endpoint: str) -> Any:
    """Returns a client whose role does not allow the coordinator table."""
    client = boto3.client("dynamodb", endpoint_url=moto_endpoint, region_name="us-east-1")

    def deny(params: dict[str, Any], **_: Any) -> Any:
        if b"-CoordinatorState" in params["body"]:
            answer = {"Error": {"Code": "AccessDeniedException", "Message": "as the test wants it"}}
            return AWSResponse("", 403, HTTPHeaders(), None), answer
        return None

    client.meta.events.register("before-call.dynamodb.GetItem", deny)
    return client


def takes(membership: Membership, stance: Stance) -> Callable[[], bool]:
    return lambda: membership.stance() is stance


@pytest.mark.parametrize(("report_in", "expected"), [(None, 10.0), (30.0, 10.0), (4.0, 4.0), (0.2, 1.0), (-500.0, 1.0)])
def test_looks_are_as_rare_as_the_failover_time_unless_a_report_is_due(
    report_in: float | None, expected: float
) -> None:
    assert pause(10.0, report_in) == expected


async def test_a_worker_follows_its_fleet_up_and_down_again(tables: Tables) -> None:
    tables.create()
    async with member(tables) as membership:
        assert membership.stance() is Stance.SHARE
        tables.lead("1")
        tables.agree_on(ClientVersion.V3_WITH_ROLLBACK)
        await until(takes(membership, Stance.ASSIGNED))
        await until(lambda: tables.entry() is not None)
        tables.agree_on(ClientVersion.V2)
        await until(takes(membership, Stance.SHARE))
        tables.agree_on(ClientVersion.V3)
        await until(takes(membership, Stance.ASSIGNED))
        tables.release()
        await until(takes(membership, Stance.SHARE))
        tables.lead("2")
        await until(takes(membership, Stance.ASSIGNED))
    assert tables.entry() is None


async def test_a_worker_reports_while_its_fleet_upgrades_and_goes_on_sharing(tables: Tables) -> None:
    tables.create()
    tables.agree_on(ClientVersion.UPGRADING)
    async with member(tables) as membership:
        await until(lambda: tables.entry() is not None)
        assert membership.stance() is Stance.SHARE


async def test_nothing_is_made_or_told_in_a_fleet_without_coordinator_items(dynamodb: Any) -> None:
    tables = Tables(dynamodb, unique("fleet"), single=False)
    async with member(tables) as membership:
        assert membership.stance() is Stance.SHARE
    made = table_names(dynamodb)
    assert not [name for name in made if name.startswith(tables.name)]


async def test_a_worker_that_does_not_report_is_warned_of_once(tables: Tables, caplog: Any) -> None:
    tables.create()
    tables.lead("1")
    tables.agree_on(ClientVersion.V3)
    async with member(tables, report_worker_metrics=False) as membership:
        await until(lambda: "disableWorkerMetrics" in caplog.text)
        assert membership.stance() is Stance.ASSIGNED
        assert tables.entry() is None


async def test_an_unknown_version_fails_the_start(tables: Tables) -> None:
    tables.create()
    tables.put_state("Migration3.0", {"cv": {"S": "CLIENT_VERSION_4X"}})
    with pytest.raises(LeaseTableError, match="CLIENT_VERSION_4X"):
        async with member(tables):
            pass


async def test_a_role_for_the_lease_table_alone_will_do_in_a_2x_fleet_and_is_told_once(
    denied: Any, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[None] = []
    denied.meta.events.register("before-call.dynamodb.DescribeTable", lambda **_: looks.append(None))
    tables = Tables(denied, unique("fleet"), single=True)
    tables.create()
    async with member(tables) as membership:
        await until(lambda: len(looks) >= 4)
        assert membership.stance() is Stance.SHARE
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["coordinator table not readable: taken for a 2.x fleet"]


async def test_a_role_for_the_lease_table_alone_will_do_where_everything_is_in_it(denied: Any) -> None:
    tables = Tables(denied, unique("fleet"), single=True)
    tables.create()
    tables.lead("1")
    tables.agree_on(ClientVersion.V3)
    async with member(tables) as membership:
        assert membership.stance() is Stance.ASSIGNED


async def test_a_role_that_hides_a_kcl_3_fleet_fails_the_start(denied: Any) -> None:
    tables = Tables(denied, unique("fleet"), single=True)
    denied.create_table(
        TableName=tables.name,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("leaseKey", "leaseOwner")],
        KeySchema=[{"AttributeName": "leaseKey", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "LeaseOwnerToLeaseKeyIndex",
                "KeySchema": [{"AttributeName": "leaseOwner", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(LeaseTableError, match="allow it in the worker's role"):
        async with member(tables):
            pass
