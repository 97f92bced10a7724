"""A member of a shared log tells the meter whether it owns the log, and what waits there."""

from __future__ import annotations

import pytest

from kainite.base.position import Position
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.peers.sharing import log_metrics
from kainite.peers.sharing.shared_log import SharedLog
from support.log_builders import fragment
from support.log_members import members
from support.metric_sums import Sums
from support.waiting import until


def told(log: SharedLog) -> Sums:
    sums = Sums()
    log_metrics.sample(Meter(sums), log)
    return sums


async def test_an_owner_tells_of_its_peers_and_a_follower_that_it_is_one() -> None:
    async with members() as world:
        owner, follower = await world.join("a"), await world.join("b")
        await follower.append("s", Position(1), Position(1), [fragment("A", [1], count=1)])
        mine, theirs = told(owner), told(follower)
        parts = (
            metric.LOG_MEMBER, metric.LOG_OWNED, metric.LOG_FOLLOWED, metric.LOG_PEERS, metric.LOG_CREDIT,
            metric.LOG_WAITING,
        )  # fmt: skip
        assert [mine.values[part] for part in parts] == [1, 1, 0, 1, 0, 0]
        assert [theirs.values[part] for part in parts] == [1, 0, 1, 0, 0, 0]
        assert mine.values[metric.LOG_SETTLED] >= theirs.values[metric.LOG_SETTLED] > 0
        await world.leave("a")
        await until(lambda: told(follower).values[metric.LOG_OWNED] == 1)
        assert told(owner).values[metric.LOG_SETTLED] == 0


async def test_what_waits_is_told_in_appends_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with members(put_interval=0.0) as world:
        owner = await world.join("a")
        serving = owner.owner
        assert serving is not None
        monkeypatch.setattr(type(serving), "queued", property(lambda self: (3, 700)))
        sums = told(owner)
        assert (sums.values[metric.LOG_WAITING], sums.values[metric.LOG_WAITING_BYTES]) == (3, 700)


async def test_members_sample_themselves() -> None:
    async with members() as world:
        sums = Sums()
        log = await world.join("a", meter=Meter(sums))
        assert log.owner is not None
        await until(lambda: sums.seen[metric.LOG_OWNED] > 0)
        await world.leave("a")
        assert sums.values[metric.LOG_OWNED] == 0
