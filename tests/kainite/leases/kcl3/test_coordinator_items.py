"""Items as the real KCL 3.1.3 wrote them, attribute for attribute."""

from __future__ import annotations

import pytest

from kainite.base.errors import LeaseTableError
from kainite.leases.kcl3.coordinator_items import (
    ClientVersion,
    CoordinatorLayout,
    LeaderLock,
    client_version,
    coordinator_key,
    last_report,
    leader_lock,
    worker_entry,
    worker_key,
)

UPGRADING = {
    "cv": {"S": "CLIENT_VERSION_UPGRADE_FROM_2X"},
    "mb": {"S": "j2"},
    "h": {"L": [{"M": {"cv": {"S": "CLIENT_VERSION_INIT"}, "mb": {"S": "j2"}, "mts": {"N": "1795271284353"}}}]},
    "mts": {"N": "1795271284364"},
    "key": {"S": "Migration3.0"},
}
LEADER = {
    "ownerName": {"S": "j3"},
    "recordVersionNumber": {"S": "faa0c648-fbdc-4bdd-ba3b-7d7613cae444"},
    "key": {"S": "Leader"},
    "leaseDuration": {"S": "120000"},
}
WORKER = {"wid": {"S": "j2"}, "opr": {"M": {}}, "sts": {"M": {}}, "lut": {"N": "1795271378"}}


def test_javas_items_are_read() -> None:
    assert client_version(UPGRADING) is ClientVersion.UPGRADING
    assert leader_lock(LEADER) == LeaderLock("j3", "faa0c648-fbdc-4bdd-ba3b-7d7613cae444", 120.0)
    assert last_report(WORKER) == 1795271378


@pytest.mark.parametrize("lut", [{"N": "17.5"}, "17"])
def test_an_entry_whose_time_is_none_is_an_error_of_the_table(lut: object) -> None:
    with pytest.raises(LeaseTableError, match="not one of KCL's"):
        last_report({"lut": lut})


def test_this_workers_entry_is_the_one_that_java_writes_without_measurements() -> None:
    assert worker_key(CoordinatorLayout.SPLIT, "j2") | worker_entry(CoordinatorLayout.SPLIT, 1795271378.9) == WORKER


def test_in_a_single_table_the_entry_is_told_from_leases() -> None:
    entry = worker_key(CoordinatorLayout.SINGLE, "w") | worker_entry(CoordinatorLayout.SINGLE, 1.0)
    assert (entry["leaseKey"], entry["entityType"]) == ({"S": "w"}, {"S": "WORKER_METRIC_STATS"})
    assert coordinator_key(CoordinatorLayout.SINGLE, "Leader") == {"leaseKey": {"S": "Leader"}}


@pytest.mark.parametrize("item", [None, LEADER | {"isReleased": {"S": "1"}}])
def test_nobody_leads_without_a_lock_or_after_its_release(item: dict[str, dict[str, str]] | None) -> None:
    assert leader_lock(item) is None


@pytest.mark.parametrize("change", [{"leaseDuration": {"S": "soon"}}, {"ownerName": {"N": "1"}}])
def test_a_lock_that_is_none_of_kcls_is_an_error(change: dict[str, dict[str, str]]) -> None:
    with pytest.raises(LeaseTableError, match="Leader"):
        leader_lock(LEADER | change)


def test_a_version_of_a_later_kcl_is_an_error_that_names_it() -> None:
    with pytest.raises(LeaseTableError, match="CLIENT_VERSION_4X"):
        client_version({"cv": {"S": "CLIENT_VERSION_4X"}})


@pytest.mark.parametrize(
    ("version", "reports", "assigns"),
    [
        (ClientVersion.INIT, False, False),
        (ClientVersion.V2, False, False),
        (ClientVersion.UPGRADING, True, False),
        (ClientVersion.V3_WITH_ROLLBACK, True, True),
        (ClientVersion.V3, True, True),
    ],
)
def test_what_each_version_asks_of_a_worker(version: ClientVersion, reports: bool, assigns: bool) -> None:
    assert (version.reports, version.assigns) == (reports, assigns)
