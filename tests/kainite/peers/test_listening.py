"""Members connect over TLS and with secrets; nobody else does, and nobody is disturbed."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.address import Address
from kainite.base.errors import SettingsError
from kainite.base.position import Position
from kainite.base.process_identity import ProcessIdentity
from kainite.base.redaction import forget
from kainite.peers.access import Access, access_of
from kainite.peers.address import from_text
from kainite.peers.feed.conversation import Wishes
from kainite.peers.feed.following import LogFeed
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import LogSettings, ServiceSettings, UowSettings
from kainite.store.memory import MemoryStore
from support.certificates import Authority
from support.log_builders import fragment
from support.shard_holders import ShardHolders
from support.waiting import until

LIMIT = 30.0
SETTINGS = LogSettings(table="log", owner="", put_interval=0.0, lease=2.0, heartbeat=0.5, poll=0.05)


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    authority = Authority(tmp_path, "authority")
    signed = authority.sign("host")
    secrets = tmp_path / "secrets"
    secrets.write_text("ann:daemon,follow:a secret\n")
    secrets.chmod(0o600)
    return ServiceSettings(
        certificate_file=signed.certificate, key_file=signed.key, trust_file=authority.trust, secret_file=secrets
    )


async def member(stack: AsyncExitStack, store: MemoryStore, worker: str, access: Access) -> SharedLog:
    opening = open_shared_log(
        store,
        replace(SETTINGS, owner=worker),
        UowSettings(),
        "s",
        holders=ShardHolders(),
        process=ProcessIdentity(worker),
        access=access,
    )
    return (await stack.enter_async_context(opening))[0]


async def test_members_share_the_log_over_tls_and_with_secrets(settings: ServiceSettings) -> None:
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        owner = await member(stack, store, "a", access_of(settings))
        await asyncio.wait_for(owner.reached(), LIMIT)
        stranger = await member(stack, store, "c", access_of(replace(settings, secret_file=None)))
        plain = await member(stack, store, "d", Access())
        client = await member(stack, store, "b", access_of(settings))
        await asyncio.wait_for(client.reached(), LIMIT)
        await client.append("s0", Position(1), Position(1), [fragment("T", [1], count=1)])
        assert owner.owner is not None
        assert [unit.uow for unit in owner.owner.state.units.values()] == ["T"]
        assert not stranger.is_reached
        assert not plain.is_reached
    forget()


async def test_only_who_has_a_certificate_and_the_secret_follows_the_log(
    settings: ServiceSettings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = MemoryStore()
    accesses = [access_of(settings), access_of(replace(settings, secret_file=None)), Access()]
    async with AsyncExitStack() as stack:
        owner = await member(stack, store, "a", access_of(settings))
        await asyncio.wait_for(owner.reached(), LIMIT)
        wishes = Wishes("log/0", "follower", 1 << 20, 1 << 16, outcomes=False)
        feeds = [LogFeed(store, "0", wishes, access) for access in accesses]
        running = [asyncio.create_task(feed.run()) for feed in feeds]
        await until(lambda: feeds[0].is_following)
        await until(lambda: sum(record.getMessage() == "log is read, not fed" for record in caplog.records) >= 2)
        assert [feed.is_following for feed in feeds] == [True, False, False]
        assert [feed.name for feed in owner.reception.followers] == ["follower"]
        for feed in feeds:
            feed.close()
        await asyncio.gather(*running)
    forget()


async def test_the_address_that_others_are_told_is_the_advertised_one() -> None:
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        owner = await member(stack, store, "a", Access(advertise=Address("log.internal", 0)))
        await asyncio.wait_for(owner.reached(), LIMIT)
        head = store.read_head("0")
        assert head is not None
        told = from_text(head.address)
        assert told is not None
        assert told.host == "log.internal"
        assert told.port > 0
        with pytest.raises(SettingsError, match="logListen: cannot listen"):
            await member(stack, store, "b", Access(listen=Address("127.0.0.1", told.port)))
