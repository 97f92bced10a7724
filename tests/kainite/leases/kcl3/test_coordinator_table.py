"""Reads and writes of the coordinator items in both layouts, on each DynamoDB that the tests have."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import LeaseTableUnavailableError
from kainite.leases.kcl3.coordinator_items import ClientVersion, CoordinatorLayout, LeaderLock
from kainite.leases.kcl3.coordinator_table import OWNER_INDEX, CoordinatorTable, FleetState
from kainite.settings import LeaseSettings
from support.dynamodb_doubles import on_each_double
from support.names import unique

pytestmark = on_each_double

KEYS = {CoordinatorLayout.SPLIT: ("key", "wid"), CoordinatorLayout.SINGLE: ("leaseKey", "leaseKey")}
layouts = pytest.mark.parametrize("layout", list(CoordinatorLayout))

Item = dict[str, Any]


class Tables:
    """An application's tables, as KCL makes them."""

    def __init__(self, dynamodb: Any) -> None:
        self.dynamodb = dynamodb
        self.application = unique("fleet")
        settings = LeaseSettings(self.application, f"{self.application}-leases", "me")
        self.coordinator = CoordinatorTable(dynamodb, settings)

    def state(self, layout: CoordinatorLayout) -> str:
        return f"{self.application}-{'CoordinatorState' if layout is CoordinatorLayout.SPLIT else 'leases'}"

    def workers(self, layout: CoordinatorLayout) -> str:
        return f"{self.application}-{'WorkerMetricStats' if layout is CoordinatorLayout.SPLIT else 'leases'}"

    def create(self, layout: CoordinatorLayout) -> None:
        state, worker = KEYS[layout]
        self.make(self.state(layout), state)
        if layout is CoordinatorLayout.SPLIT:
            self.make(self.workers(layout), worker)

    def make(self, name: str, key: str, index: str | None = None) -> None:
        indices = [{
            "IndexName": OWNER_INDEX,
            "KeySchema": [{"AttributeName": index, "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }]  # fmt: skip
        self.dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in (key, index) if each],
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": indices} if index else {}),
        )

    def put_state(self, layout: CoordinatorLayout, key: str, item: Item) -> None:
        whole = {KEYS[layout][0]: {"S": key}, **item}
        self.dynamodb.put_item(TableName=self.state(layout), Item=whole)

    def entry(self, layout: CoordinatorLayout, worker: str) -> Item | None:
        key = {KEYS[layout][1]: {"S": worker}}
        answer = self.dynamodb.get_item(TableName=self.workers(layout), Key=key, ConsistentRead=True)
        found: Item | None = answer.get("Item")
        return found


@pytest.fixture
def tables(dynamodb: Any) -> Tables:
    return Tables(dynamodb)


def test_without_tables_there_is_no_fleet(tables: Tables) -> None:
    assert tables.coordinator.read() is None
    assert not tables.coordinator.has_owner_index()


@layouts
def test_tables_without_an_agreement_are_no_fleet_either(tables: Tables, layout: CoordinatorLayout) -> None:
    tables.create(layout)
    assert tables.coordinator.read() is None


@layouts
def test_a_fleet_under_a_leader_is_read_with_its_lock_and_last_report(
    tables: Tables, layout: CoordinatorLayout
) -> None:
    tables.create(layout)
    tables.put_state(layout, "Migration3.0", {"cv": {"S": ClientVersion.V3}})
    assert tables.coordinator.read() == FleetState(ClientVersion.V3, layout)
    lock = {"ownerName": {"S": "me"}, "leaseDuration": {"S": "120000"}, "recordVersionNumber": {"S": "v"}}
    tables.put_state(layout, "Leader", lock)
    tables.coordinator.report(layout, 1795271378.9)
    assert tables.coordinator.read() == FleetState(ClientVersion.V3, layout, LeaderLock("me", "v", 120.0), 1795271378)


@layouts
def test_who_leads_is_not_asked_in_a_fleet_that_shares(tables: Tables, layout: CoordinatorLayout) -> None:
    tables.create(layout)
    tables.put_state(layout, "Migration3.0", {"cv": {"S": ClientVersion.UPGRADING}})
    tables.put_state(layout, "Leader", {"ownerName": {"S": "not looked at, or it would be refused"}})
    assert tables.coordinator.read() == FleetState(ClientVersion.UPGRADING, layout)


@layouts
def test_reports_keep_what_others_wrote_beside_and_a_withdrawal_takes_all_away(
    tables: Tables, layout: CoordinatorLayout
) -> None:
    tables.create(layout)
    key = KEYS[layout][1]
    tables.dynamodb.put_item(TableName=tables.workers(layout), Item={key: {"S": "me"}, "newer": {"S": "kept"}})
    for now in (1.0, 2.0):
        tables.coordinator.report(layout, now)
    entry = tables.entry(layout, "me")
    assert entry is not None
    assert (entry["lut"], entry["opr"], entry["newer"]) == ({"N": "2"}, {"M": {}}, {"S": "kept"})
    for _ in range(2):
        tables.coordinator.withdraw(layout)
    assert tables.entry(layout, "me") is None


@layouts
def test_reporting_where_the_table_is_not_there_yet_may_be_tried_again(
    tables: Tables, layout: CoordinatorLayout
) -> None:
    with pytest.raises(LeaseTableUnavailableError, match="not there yet"):
        tables.coordinator.report(layout, 1.0)
    tables.coordinator.withdraw(layout)


@pytest.mark.parametrize("indexed", [True, False])
def test_the_index_that_only_kcl_3_makes_is_seen(tables: Tables, indexed: bool) -> None:
    tables.make(tables.state(CoordinatorLayout.SINGLE), "leaseKey", "leaseOwner" if indexed else None)
    assert tables.coordinator.has_owner_index() is indexed
