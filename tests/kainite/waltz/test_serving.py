"""Applications' port: where it is opened, and what HEAD of their partitions says."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kainite.base.address import Address
from kainite.log.format.entry import ReqId
from kainite.peers.access import Access
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
        (address,) = {head.address for name in names if (head := store.read_head(name)) is not None}
        there = from_text(address)
        assert there is not None
        async with linked(WALTZ, there, Introduction("test")) as link, asyncio.timeout(30):
            link.send(CheckStorageConnectivityRequest(ReqId()))
            assert await link.next() == CheckStorageConnectivityResponse(ReqId(), (("DynamoDB", True),))
    heads = [store.read_head(name) for name in names]
    assert [head is not None and head.released for head in heads] == [True, True]


async def test_nothing_is_opened_where_there_are_no_partitions(settings: Settings) -> None:
    store = MemoryStore()
    async with serving_applications(settings, store, Access()):
        assert store.read_head(application_partition(settings.log.partition, 0)) is None
