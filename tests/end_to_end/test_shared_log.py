"""Several daemons of one application collect units of work through one log, and its owner dies, leaves or stands still.

Whoever holds the log, each record's unit is in it once, and no child is restarted because the log's owner changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import UnitMeta
from kainite.store.dynamodb import DynamoDBStore
from support.fleet_world import Call, Daemon, Fleet, fleet
from support.names import unique

SHARDS = 3
LEASE_MS = 3_000


class World:
    """A fleet, and the log that it shares."""

    def __init__(self, members: Fleet, store: DynamoDBStore) -> None:
        self.fleet = members
        self._store = store
        self.daemons: dict[str, Daemon] = {}

    def join(self, worker: str) -> None:
        self.daemons[worker] = self.fleet.join(worker)

    @property
    def owner(self) -> str:
        try:
            head = self._store.read_head("0")
        except LogUnavailableError:  # before the first daemon has made the table
            return ""
        return head.owner if head and not head.released else ""

    def units(self) -> Counter[str]:
        batches = self._store.read_batches("0", 0, strong=True)
        metas = (entry.meta for batch in batches for entry in batch.entries)
        return Counter(meta.uow for meta in metas if isinstance(meta, UnitMeta))

    def collected(self) -> None:
        """Waits until every record that was put before the call is in the log, each once."""
        wanted = {f"T-{number}" for number in list(self.fleet.put)}
        self.fleet.eventually(lambda: wanted <= self.units().keys(), "units are missing in the log")
        assert {name: times for name, times in self.units().items() if times > 1} == {}

    def owned_by_another_than(self, before: str) -> None:
        self.fleet.eventually(lambda: self.owner not in ("", before), f"nobody takes the log over from {before}")

    def held_by(self, worker: str) -> str:
        """Returns one shard whose lease the worker owns."""
        return next(lease.key for lease in self.fleet.leases if lease.owner == worker)

    def child(self, worker: str, shard: str) -> int:
        """Waits until the worker's child was given records of the shard; returns the newest such child's process id."""

        def calls() -> list[Call]:
            return [call for call in self.fleet.calls() if (call.worker, call.shard) == (worker, shard)]

        self.fleet.eventually(calls, f"{worker} delivers nothing of {shard}")
        return max(calls(), key=lambda call: call.began).pid


@contextmanager
def sharing(kinesis: Any, dynamodb: Any, endpoint: str, folder: Path) -> Iterator[World]:
    """Runs three daemons that have shared the shards."""
    name = unique("shared")
    opened = fleet(
        kinesis, dynamodb, endpoint, name, folder, shards=SHARDS, failover=30.0, unitsOfWork="true",
        leaseAssignmentIntervalMillis="500", logLeaseMillis=str(LEASE_MS),
        shutdownGraceMillis="3000",
    )  # fmt: skip
    with opened as members:
        world = World(members, DynamoDBStore(dynamodb, f"{name}-log"))
        for worker in ("one", "two", "three"):
            world.join(worker)
        members.eventually(lambda: members.balanced_among("one", "two", "three"), "the shards are not shared")
        world.collected()
        yield world


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Iterator[World]:
    with sharing(kinesis, dynamodb, moto_endpoint, tmp_path) as found:
        yield found


def test_an_owner_that_is_killed_or_leaves_is_replaced_and_children_go_on(world: World) -> None:
    killed = world.owner
    others = [worker for worker in world.daemons if worker != killed]
    held = {worker: world.held_by(worker) for worker in others}
    children = {worker: world.child(worker, shard) for worker, shard in held.items()}
    world.daemons[killed].kill()
    world.owned_by_another_than(killed)
    world.join(killed)
    world.collected()
    left = world.owner
    stays = next(worker for worker in others if worker != left)
    world.daemons[left].leave()
    world.owned_by_another_than(left)
    world.collected()
    assert world.child(stays, held[stays]) == children[stays], "a child was restarted"


@pytest.mark.long
def test_an_owner_that_stood_still_beyond_its_lease_follows_the_next_one(world: World) -> None:
    frozen = world.owner
    world.daemons[frozen].pause()
    world.owned_by_another_than(frozen)
    world.daemons[frozen].wake()
    world.collected()
    assert world.owner != frozen
    assert world.daemons[frozen].running
    assert "log is owned elsewhere now" in (world.fleet.folder / f"{frozen}.log").read_text()
