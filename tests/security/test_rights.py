"""A user does what its rights allow and nothing else, on both ports; who joins is logged, who is refused is counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.peers.access import Access
from kainite.peers.address import from_text
from kainite.peers.client import linked
from kainite.peers.connection.introduction import Introduction, Key
from kainite.peers.messages import PEERS, Follow, Join, Message, RequestRefused, RowRequest
from kainite.settings import Settings, load
from kainite.store.memory import MemoryStore
from kainite.waltz.partition import application_partition
from kainite.waltz.serving import serving_applications
from kainite.waltz.wire.messages import CheckStorageConnectivityRequest, CheckStorageConnectivityResponse
from kainite.waltz.wire.versions import WALTZ
from support.doors import holding
from support.log_members import LIMIT, P, members
from support.metric_sums import Sums
from support.waiting import until

USERS: Mapping[str, Key] = {
    user: Key(f"secret of {user}", frozenset(rights))
    for user, rights in {
        "host": {"daemon"},
        "job": {"follow"},
        "person": {"operate"},
        "orders": {"application/1"},
        "all": {"application"},
        "nothing": set[str](),
    }.items()
}
LOG = f"t/{P}"
REQUESTS: dict[str, Message] = {
    "daemon": Join(1, 0, LOG, "s", "b", "b"),
    "follow": Follow(1, 0, LOG, "f", 0, 1 << 20, 1 << 20, False),
    "operate": RowRequest(1, 0, LOG, "orders", {"id": "1"}),
}


def as_user(user: str) -> Introduction:
    return Introduction("test", user, USERS[user].secret)


def told(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


async def test_each_request_to_the_owner_needs_its_right(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sums = Sums()
    async with members() as all_:
        log = await all_.join("a", access=Access(held=holding(USERS)), meter=Meter(sums))
        address = from_text(log.address)
        assert address is not None
        refused = 0
        for user, key in USERS.items():
            for right, request in REQUESTS.items():
                async with linked(PEERS, address, as_user(user)) as link, asyncio.timeout(LIMIT):
                    link.send(request)
                    answer = await link.next()
                if right in key.rights:
                    assert not isinstance(answer, RequestRefused)
                else:
                    assert isinstance(answer, RequestRefused)
                    assert f"lacks the right {right}" in answer.cause
                    refused += 1
        assert refused == 15
        await until(lambda: sums.values[metric.LOG_REFUSED] >= refused)
    (joined,) = told(caplog, "daemon joined the log")
    assert (joined["user"], joined["worker"]) == ("host", "b")
    assert str(joined["peer"]).startswith("127.0.0.1:")
    assert [fields["user"] for fields in told(caplog, "log is followed by a peer")] == ["job"]
    assert len(told(caplog, "log peer without a right")) == refused
    assert "secret of" not in caplog.text


async def test_a_daemon_that_may_only_follow_is_told_so_and_does_not_append(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with members() as all_:
        await all_.join("a", access=Access(held=holding(USERS)))
        mine = {"job": USERS["job"], **USERS}
        b = await all_.join("b", access=Access(held=holding(mine)), reached=False)
        await until(lambda: bool(told(caplog, "log's owner not understood")))
        assert "lacks the right daemon" in str(told(caplog, "log's owner not understood")[0]["error"])
        assert not b.is_reached


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\nstreamName=s\nexecutableName=cat\n")
    found = load(path, needs=("applicationName",))
    return replace(found, service=replace(found.service, applications=2))


@pytest.mark.parametrize(("user", "allowed"), [("orders", {1}), ("all", {0, 1}), ("host", set()), ("nothing", set())])
async def test_a_program_uses_the_partitions_that_it_has_a_right_to(
    settings: Settings, user: str, allowed: set[int]
) -> None:
    store, sums = MemoryStore(), Sums()
    async with serving_applications(settings, store, Access(held=holding(USERS)), Meter(sums)):
        names = [application_partition(settings.log.partition, number) for number in (0, 1)]
        await until(lambda: all(store.read_head(name) is not None for name in names))
        head = store.read_head(names[0])
        assert head is not None
        assert head.token == ""  # the file of users takes its place
        address = from_text(head.address)
        assert address is not None
        for number in (0, 1):
            asked = ReqId(partition=number)

            async def answer(asked: ReqId = asked) -> Any:
                async with linked(WALTZ, address, as_user(user)) as link, asyncio.timeout(LIMIT):
                    link.send(CheckStorageConnectivityRequest(asked))
                    return await link.next()

            if number in allowed:
                assert await answer() == CheckStorageConnectivityResponse(asked, (("DynamoDB", True),))
            else:
                with pytest.raises(LogUnavailableError):
                    await answer()
        assert sums.values[metric.LOG_REFUSED] >= 2 - len(allowed)
        with pytest.raises(LogProtocolError, match="does not let this process in"):
            async with linked(WALTZ, address, replace(as_user(user), secret="another")):
                pass
