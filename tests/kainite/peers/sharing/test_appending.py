"""Appending elsewhere: a port that refuses is evidence, and nothing else is."""

from __future__ import annotations

import asyncio

from kainite.base.clock import boot_seconds
from kainite.log.contract import LogStore
from kainite.peers.access import Access
from kainite.peers.address import OwnerAddress, of_listener, reached_by
from kainite.peers.sharing.appending import Appending
from kainite.peers.sharing.connection import OwnerConnection
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.head_look import ToldOnce
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.membership import Cut, Refused
from kainite.peers.sharing.present_log import PresentLog
from support.followed_log import LOG
from support.log_members import LIMIT, P, members
from support.ports import free_port


def appending_as(worker: str, log: str = LOG) -> Appending:
    present, reading = PresentLog(boot_seconds, 1.0), LatestReading(boot_seconds)
    return Appending(MemberName(log, "s", worker, "process"), Access(), present, reading, ToldOnce())


def owners_address(store: LogStore) -> OwnerAddress:
    head = store.read_head(P)
    assert head is not None
    address = reached_by(head.address, head.token)
    assert address is not None
    return address


async def test_a_port_that_refuses_is_told_from_one_that_closes_the_connection() -> None:
    port = free_port()
    assert await appending_as("b").append_at(of_listener("127.0.0.1", port), 1, lambda: None) == Refused()

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", port):
        assert await appending_as("b").append_at(of_listener("127.0.0.1", port), 1, lambda: None) == Cut()


async def test_it_stands_before_the_shards_while_the_owner_takes_requests() -> None:
    async with members() as all_:
        await all_.join("a")
        there = owners_address(all_.store)
        appending, welcomed = appending_as("b"), asyncio.Event()
        running = asyncio.create_task(appending.append_at(there, 1, welcomed.set))
        await asyncio.wait_for(welcomed.wait(), LIMIT)
        assert isinstance(appending.present_log.log, OwnerConnection)
        await all_.kill("a")
        assert await asyncio.wait_for(running, LIMIT) == Cut()
        assert appending.present_log.log is None


async def test_an_owner_that_was_replaced_or_has_another_log_is_left() -> None:
    async with members() as all_:
        await all_.join("a")
        there = owners_address(all_.store)
        assert await appending_as("b").append_at(there, 2, lambda: None) == Cut()
        assert await appending_as("b", "another/0").append_at(there, 1, lambda: None) == Cut()
