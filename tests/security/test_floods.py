"""Connections without a key, in any number: members join meanwhile, few lines are logged, and nothing of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.peers import server as server_module
from kainite.peers.address import OwnerAddress, from_text
from kainite.peers.connection.introduction import Doorkeeper, Introduction, Key
from kainite.peers.messages import PEERS, Message
from kainite.peers.server import MOST_GREETING, serving
from kainite.peers.service import Peer
from support.attackers import Attacker, attacker
from support.log_members import LIMIT, members
from support.metric_sums import Sums
from support.served_peers import HERE
from support.waiting import until

IDLE = 1_000
FLOOD = """
import itertools, socket, sys, time
port, held = int(sys.argv[1]), []
for number in itertools.count():
    one = socket.socket()
    one.settimeout(20)
    try:
        one.bind((f"127.0.0.{1 + number % int(sys.argv[2])}", 0))
        one.connect(("127.0.0.1", port))
        if number % 3 == 0:
            one.send(b"K")
    except OSError:
        one.close()
        continue
    held.append(one)
    if len(held) > 1000:
        held.pop(0).close()
    if number == 1000:
        print("flooding", flush=True)
    if number > 1000:
        time.sleep(0.001)
"""
"""Opens connections as fast as it can, and says next to nothing on them; keeps the latest thousand."""


def descriptors() -> int:
    """Returns how many files and sockets this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class _Silent:
    """Takes messages and answers none."""

    codec = PEERS

    async def take(self, peer: Peer[Message], message: Message) -> None:
        return None

    def left(self, peer: Peer[Message]) -> None:
        pass


@contextlib.asynccontextmanager
async def flood(address: OwnerAddress, hosts: int) -> AsyncIterator[None]:
    """Floods a port from another process, from so many addresses, until the end."""
    command = [sys.executable, "-c", FLOOD, str(address.port), str(hosts)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(LIMIT):
            assert await process.stdout.readline() == b"flooding\n"
        yield
    finally:
        process.kill()
        await process.communicate()  # to the end of its output: its pipe is closed before the test ends


@pytest.mark.parametrize("hosts", [1, 50])
async def test_a_flood_shuts_no_member_out_and_nothing_of_it_stays(
    hosts: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    sums = Sums()
    async with members() as all_:
        log = await all_.join("a", meter=Meter(sums))
        address = from_text(log.address)
        assert address is not None
        before = descriptors()
        async with flood(address, hosts):
            for worker in "bcdefg":
                await all_.join(worker)
            assert log.peers == 6
        await until(lambda: descriptors() < before + MOST_GREETING // 2)
        assert sums.values[metric.LOG_REFUSED] >= IDLE // 10
        lines = [record for record in caplog.records if record.getMessage() == "log peer cut"]
        assert len(lines) < 100
        assert log.peers == 6


async def test_idle_connections_take_no_place_from_who_has_a_key() -> None:
    door = Doorkeeper({"ann": Key("one", frozenset({"daemon"}))}.get)
    async with serving(_Silent(), HERE, door=door) as server, contextlib.AsyncExitStack() as stack:
        for _ in range(MOST_GREETING + 50):
            await stack.enter_async_context(attacker(server.address))
        honest = await stack.enter_async_context(attacker(server.address))
        assert await honest.prove(Introduction("test", "ann", "one"))
        assert server.connections <= MOST_GREETING + 1
        assert server.peers == 1


async def test_the_crowd_of_one_address_is_cut_and_not_others() -> None:
    door = Doorkeeper(lambda _: None)
    async with serving(_Silent(), HERE, door=door) as server, contextlib.AsyncExitStack() as stack:
        quiet = await stack.enter_async_context(_from("127.0.0.9", server.address.port))
        crowd = [await stack.enter_async_context(attacker(server.address)) for _ in range(MOST_GREETING + 20)]
        for one in crowd[:20]:
            assert await one.heard() == []
        await quiet.owners_hello()
        assert not quiet.reader.at_eof()


async def test_one_user_takes_no_place_from_others_and_nobody_takes_the_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, most in (("MOST_PEERS", 6), ("MEMBERS_PLACES", 3), ("MOST_OF_A_USER", 2)):
        monkeypatch.setattr(server_module, name, most)
    keys = {user: Key("one", frozenset({right})) for user, right in
            (("host", "daemon"), ("job", "follow"), ("other", "follow"), ("third", "follow"))}  # fmt: skip
    async with serving(_Silent(), HERE, door=Doorkeeper(keys.get)) as server, contextlib.AsyncExitStack() as stack:

        async def stays(user: str) -> bool:
            peers = server.peers
            one = await stack.enter_async_context(attacker(server.address))
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                if await one.prove(Introduction("test", user, "one")):
                    return server.peers == peers + 1
            return False

        assert [await stays("job") for _ in range(3)] == [True, True, False]
        assert [await stays("other") for _ in range(2)] == [True, False]
        assert not await stays("third")
        assert [await stays("host") for _ in range(4)] == [True, True, True, False]


async def test_a_users_place_is_free_when_its_peer_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_OF_A_USER", 1)
    door = Doorkeeper({"job": Key("one", frozenset({"follow"}))}.get)
    async with serving(_Silent(), HERE, door=door) as server:
        for _ in range(3):
            async with attacker(server.address) as one:
                assert await one.prove(Introduction("test", "job", "one"))
            await until(lambda: server.peers == 0)


@contextlib.asynccontextmanager
async def _from(host: str, port: int) -> AsyncIterator[Attacker]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    try:
        yield Attacker(reader, writer)
    finally:
        writer.transport.abort()
