"""Applications' port: where it is opened, and what HEAD of their partitions says."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.peers.access import Access, application_user
from kainite.peers.address import from_text
from kainite.peers.client import linked
from kainite.peers.connection.introduction import Introduction
from kainite.settings import ServiceSettings, Settings, load
from kainite.store.memory import MemoryStore
from kainite.waltz.partition import application_partition
from kainite.waltz.serving import applications_access, serving_applications
from kainite.waltz.wire.messages import CheckStorageConnectivityRequest, CheckStorageConnectivityResponse
from kainite.waltz.wire.versions import WALTZ
from support.waiting import until

OPEN, PUBLIC, INNER = Address("0.0.0.0", 7070), Address("log.internal", 7070), Address("10.0.0.7", 1)


@pytest.mark.parametrize(
    ("settings", "access", "listen", "advertise"),
    [
        (ServiceSettings(), Access(), Address("127.0.0.1", 0), None),
        (ServiceSettings(), Access(OPEN, PUBLIC), Address("0.0.0.0", 0), Address("log.internal", 0)),
        (ServiceSettings(applications_listen=INNER), Access(OPEN, PUBLIC), INNER, None),
        (
            ServiceSettings(applications_listen=OPEN, applications_advertise=PUBLIC),
            Access(),
            OPEN,
            PUBLIC,
        ),
    ],
)
def test_where_applications_connect(
    settings: ServiceSettings, access: Access, listen: Address, advertise: Address | None
) -> None:
    found = applications_access(settings, access)
    assert (found.listen, found.advertise) == (listen, advertise)


@pytest.fixture
def settings(tmp_path):  # type: ignore[no-untyped-def]
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\nstreamName=s\nexecutableName=cat\n")
    return load(path, needs=("applicationName",))


async def test_partitions_are_served_on_a_port_of_their_own(settings: Settings) -> None:
    store = MemoryStore()
    with_two = replace(settings, service=replace(settings.service, applications=2))
    names = [application_partition(settings.log.partition, number) for number in (0, 1)]
    async with serving_applications(with_two, store, Access()):
        await until(lambda: all(store.read_head(name) is not None for name in names))
        first, second = (store.read_head(name) for name in names)
        assert first is not None
        assert second is not None
        assert first.address == second.address
        there = from_text(first.address)
        assert there is not None
        one = Introduction("test", application_user(1), second.token)
        asked = ReqId(partition=1)
        async with linked(WALTZ, there, one) as link, asyncio.timeout(30):
            link.send(CheckStorageConnectivityRequest(asked))
            assert await link.next() == CheckStorageConnectivityResponse(asked, (("DynamoDB", True),))
            link.send(CheckStorageConnectivityRequest(ReqId(partition=0)))  # its HEAD was not shown
            with pytest.raises(LogUnavailableError):
                await link.next()
        for wrong in (replace(one, user=application_user(0)), Introduction("test")):
            with pytest.raises(LogProtocolError, match="does not let this process in"):
                async with linked(WALTZ, there, wrong):
                    pass
    heads = [store.read_head(name) for name in names]
    assert [head is not None and head.released for head in heads] == [True, True]


async def test_nothing_is_opened_where_there_are_no_partitions(settings: Settings) -> None:
    store = MemoryStore()
    async with serving_applications(settings, store, Access()):
        assert store.read_head(application_partition(settings.log.partition, 0)) is None
