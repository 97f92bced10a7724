"""KCL 3's coordinator items: the fleet's client version, its leader and its workers. Pure functions.

KCL 3.0 to 3.4 stores them in tables of their own, ``<application>-CoordinatorState`` (key ``key``) and
``<application>-WorkerMetricStats`` (key ``wid``). KCL 3.5 and later store them in the lease table (key ``leaseKey``),
told from leases by ``entityType``. The attributes are the same in both (docs/kcl.md, *KCL 3.x fleets*).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from kainite.aws.dynamodb import Item, Value, number, text, text_map
from kainite.base.errors import LeaseTableError

MIGRATION_KEY = "Migration3.0"
LEADER_KEY = "Leader"
LEASE_DURATION_S = 120.0
"""Used where the item has no duration: KCL's own (``DynamoDBLockBasedLeaderDecider``)."""


class CoordinatorLayout(Enum):
    """The place of a fleet's coordinator items."""

    SPLIT = "split"  # KCL 3.0-3.4
    SINGLE = "single"  # KCL 3.5 and later


class ClientVersion(StrEnum):
    """The stage of a fleet's migration from KCL 2.x to 3.x (KCL's ``ClientVersion``); the values are KCL's."""

    INIT = "CLIENT_VERSION_INIT"
    V2 = "CLIENT_VERSION_2X"
    UPGRADING = "CLIENT_VERSION_UPGRADE_FROM_2X"
    V3_WITH_ROLLBACK = "CLIENT_VERSION_3X_WITH_ROLLBACK"
    V3 = "CLIENT_VERSION_3X"

    @property
    def reports(self) -> bool:
        """Returns whether the fleet's workers report that they are there."""
        return self in (ClientVersion.UPGRADING, ClientVersion.V3_WITH_ROLLBACK, ClientVersion.V3)

    @property
    def assigns(self) -> bool:
        """Returns whether a leader assigns the leases."""
        return self in (ClientVersion.V3_WITH_ROLLBACK, ClientVersion.V3)


@dataclass(frozen=True, slots=True)
class LeaderLock:
    """The leader's lock: alive as long as ``version`` keeps changing.

    Attributes:
        owner: the worker that leads.
        version: another one at each heartbeat, every 30 s.
        duration: seconds without a heartbeat after which any worker may take the lock.
    """

    owner: str
    version: str
    duration: float


def coordinator_key(layout: CoordinatorLayout, key: str) -> dict[str, Value]:
    """Returns the primary key of a coordinator item."""
    return {"key" if layout is CoordinatorLayout.SPLIT else "leaseKey": text(key)}


def worker_key(layout: CoordinatorLayout, worker: str) -> dict[str, Value]:
    """Returns the primary key of a worker's entry."""
    return {"wid" if layout is CoordinatorLayout.SPLIT else "leaseKey": text(worker)}


def client_version(item: Item) -> ClientVersion:
    """Reads the version in an item ``Migration3.0``.

    Raises:
        LeaseTableError: the version is not known.
    """
    named = item.get("cv", {}).get("S")
    try:
        return ClientVersion(named)
    except ValueError as error:
        known = ", ".join(ClientVersion)
        raise LeaseTableError(
            f"item {MIGRATION_KEY!r}: client version {named!r} is not one of {known}: is this a newer KCL?"
        ) from error


def leader_lock(item: Item | None) -> LeaderLock | None:
    """Reads the lock in an item ``Leader``; returns None when nobody holds it.

    Raises:
        LeaseTableError: the item is not as KCL's lock client writes it.
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
    """Reads from a worker's entry when it reported last, seconds since the epoch; returns None when it never did.

    Raises:
        LeaseTableError: the attribute is not a time.
    """
    try:
        number = (item or {}).get("lut", {}).get("N")
        return None if number is None else int(number)
    except (AttributeError, ValueError) as error:
        raise LeaseTableError(f"a worker's entry is not one of KCL's: {error!r}") from error


def worker_entry(layout: CoordinatorLayout, now: float) -> dict[str, Value]:
    """Returns the attributes of this worker's own entry, without its key.

    KCL writes empty measurements where it has none (no cgroup, no EC2), as here: the leader then balances by the
    leases' throughput alone.

    Args:
        layout: where the entry is written.
        now: seconds since the epoch.
    """
    entry: dict[str, Value] = {"lut": number(int(now)), "sts": text_map({}), "opr": text_map({})}
    return entry | ({"entityType": text("WORKER_METRIC_STATS")} if layout is CoordinatorLayout.SINGLE else {})
