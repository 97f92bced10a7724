"""Calls to DynamoDB that are not answered, or answered late, cost their own lease alone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import LeaseLostError, LeaseTableUnavailableError
from kainite.leases.keeper import Lost
from kainite.leases.table.lease_table import LeaseTable
from support.keepers import FIRST, SECOND, Keep, event_of, gain_all, running, until
from support.names import unique


class Line:
    """Interferes with UpdateItem by lease: holds requests back, holds answers back, or breaks the connection."""

    def __init__(self, client: Any) -> None:
        self.open = threading.Event()
        self.requests: set[str] = set()
        self.answers: set[str] = set()
        self.cut: set[str] = set()
        self._key = threading.local()
        client.meta.events.register("before-send.dynamodb.UpdateItem", self._before)
        client.meta.events.register("before-parse.dynamodb.UpdateItem", self._after)

    def _before(self, request: Any, **_: Any) -> None:
        self._key.now = json.loads(request.body)["Key"]["leaseKey"]["S"]
        if self._key.now in self.requests:
            assert self.open.wait(60)
        if self._key.now in self.cut:
            raise EndpointConnectionError(endpoint_url="http://localhost")

    def _after(self, **_: Any) -> None:
        if self._key.now in self.answers:
            assert self.open.wait(60)


@pytest.fixture
def client(moto_endpoint: str) -> Any:
    once = Config(retries={"total_max_attempts": 1})
    return boto3.client("dynamodb", endpoint_url=moto_endpoint, config=once)


@pytest.fixture
async def line(client: Any) -> AsyncIterator[Line]:
    line = Line(client)
    yield line
    line.open.set()


@pytest.fixture
def table(client: Any, line: Line) -> LeaseTable:
    table = LeaseTable(client, unique("leases"))
    table.create()
    return table


def counter(table: LeaseTable, key: str) -> int:
    lease = table.get(key)
    assert lease is not None
    return lease.counter


async def test_a_renewal_without_an_answer_costs_its_own_lease_alone(keep: Keep, table: LeaseTable, line: Line) -> None:
    async with running(keep(failover=3.0)) as keeper:
        held = await gain_all(keeper, 2)
        line.requests.add(FIRST)
        assert await event_of(keeper) == Lost(held[FIRST])
        reached = counter(table, SECOND)
        await until(lambda: counter(table, SECOND) > reached + 2)
        assert held[SECOND] in keeper.held


async def test_a_checkpoint_without_an_answer_costs_its_own_lease_alone(
    keep: Keep, table: LeaseTable, line: Line
) -> None:
    async with running(keep(failover=3.0)) as keeper:
        held = await gain_all(keeper, 2)
        line.requests.add(FIRST)
        storing = asyncio.create_task(keeper.checkpoint(held[FIRST], Checkpoint("17")))
        assert await event_of(keeper) == Lost(held[FIRST])
        with pytest.raises((LeaseLostError, LeaseTableUnavailableError)):
            await storing
        reached = counter(table, SECOND)
        await until(lambda: counter(table, SECOND) > reached + 2)
        assert held[SECOND] in keeper.held


async def test_a_take_that_is_answered_late_is_waited_for(keep: Keep, table: LeaseTable, line: Line) -> None:
    line.cut.add(FIRST)
    line.answers.add(SECOND)
    async with running(keep()) as keeper:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(keeper.next_event(), 1.0)
        line.cut.clear()
        line.answers.clear()
        line.open.set()
        held = await gain_all(keeper, 2)
        for lease in held.values():
            await keeper.checkpoint(lease, Checkpoint("17"))
        assert {each.shard_id for each in keeper.held} == {FIRST, SECOND}
        assert counter(table, SECOND) == 2
