"""KCL 3's coordinator items: what the fleet agreed on, who leads, who is there. Pure functions.

KCL 3.0-3.4 keeps them in tables of their own, ``<application>-CoordinatorState`` (key ``key``) and
``<application>-WorkerMetricStats`` (key ``wid``); KCL 3.5 and later in the lease table (key ``leaseKey``), told from
leases by ``entityType``. The attributes are the same in both (reference/kcl_multilang.md §3, "Coordinator items").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from kainite.aws.dynamodb import Item, Value, number, text, text_map
from kainite.base.errors import LeaseTableError

MIGRATION_KEY = "Migration3.0"
LEADER_KEY = "Leader"
LEASE_DURATION_S = 120.0
"""KCL's own (``DynamoDBLockBasedLeaderDecider``), where the item does not tell."""


class Layout(Enum):
    """Where a fleet keeps its coordinator items."""

    SPLIT = "split"  # KCL 3.0-3.4
    SINGLE = "single"  # KCL 3.5 and later


class ClientVersion(StrEnum):
    """How far a fleet has come from KCL 2.x to 3.x (``ClientVersion``); the values are KCL's."""

    INIT = "CLIENT_VERSION_INIT"
    V2 = "CLIENT_VERSION_2X"
    UPGRADING = "CLIENT_VERSION_UPGRADE_FROM_2X"
    V3_WITH_ROLLBACK = "CLIENT_VERSION_3X_WITH_ROLLBACK"
    V3 = "CLIENT_VERSION_3X"

    @property
    def reports(self) -> bool:
        """Whether workers tell the fleet that they are there."""
        return self in (ClientVersion.UPGRADING, ClientVersion.V3_WITH_ROLLBACK, ClientVersion.V3)

    @property
    def assigns(self) -> bool:
        """Whether a leader gives out the leases."""
        return self in (ClientVersion.V3_WITH_ROLLBACK, ClientVersion.V3)


@dataclass(frozen=True, slots=True)
class LeaderLock:
    """The leader's lock: alive as long as ``version`` keeps changing.

    Attributes:
        owner: the worker that leads.
        version: another one at each heartbeat, every 30 s.
        duration: seconds without a heartbeat after which anybody may take it.
    """

    owner: str
    version: str
    duration: float


def coordinator_key(layout: Layout, key: str) -> dict[str, Value]:
    """The primary key of a coordinator item."""
    return {"key" if layout is Layout.SPLIT else "leaseKey": text(key)}


def worker_key(layout: Layout, worker: str) -> dict[str, Value]:
    """The primary key of a worker's entry."""
    return {"wid" if layout is Layout.SPLIT else "leaseKey": text(worker)}


def client_version(item: Item) -> ClientVersion:
    """The version that an item ``Migration3.0`` names.

    Raises:
        LeaseTableError: it names none that is known.
    """
    named = item.get("cv", {}).get("S")
    try:
        return ClientVersion(named)
    except ValueError as error:
        known = ", ".join(ClientVersion)
        raise LeaseTableError(
            f"item {MIGRATION_KEY!r}: client version {named!r} is not one of {known}: a newer KCL than this knows"
        ) from error


def leader_lock(item: Item | None) -> LeaderLock | None:
    """The lock that an item ``Leader`` stands for; None when nobody holds it.

    Raises:
        LeaseTableError: it is not as KCL's lock client writes it.
    """
    if item is None or item.get("isReleased", {}).get("S") == "1":
        return None
    try:
        milliseconds = item.get("leaseDuration", {}).get("S")
        duration = LEASE_DURATION_S if milliseconds is None else int(milliseconds) / 1000
        return LeaderLock(item["ownerName"]["S"], item["recordVersionNumber"]["S"], duration)
    except (KeyError, TypeError, ValueError) as error:
        raise LeaseTableError(f"item {LEADER_KEY!r} is not one of KCL's: {error!r}") from error


def last_report(item: Item | None) -> int | None:
    """When a worker reported last, seconds since the epoch; None when it never did.

    Raises:
        LeaseTableError: it is no time.
    """
    try:
        number = (item or {}).get("lut", {}).get("N")
        return None if number is None else int(number)
    except (AttributeError, ValueError) as error:
        raise LeaseTableError(f"a worker's entry is not one of KCL's: {error!r}") from error


def worker_entry(layout: Layout, now: float) -> dict[str, Value]:
    """The attributes of this worker's own entry, without its key.

    Empty measurements are what KCL writes where it has none (no cgroup, no EC2): the leader then balances by the
    leases' throughput alone.

    Args:
        layout: where it goes.
        now: seconds since the epoch.
    """
    entry: dict[str, Value] = {"lut": number(int(now)), "sts": text_map({}), "opr": text_map({})}
    return entry | ({"entityType": text("WORKER_METRIC_STATS")} if layout is Layout.SINGLE else {})
