"""One application of two streams under the real KCL in Java and Kainite: one after the other, and both at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kainite.base.checkpoint import TRIM_HORIZON
from kainite.kinesis.client import StreamClient
from kainite.leases.shard_sync.create_leases import create_missing
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import InitialPosition, StreamSettings
from support.java_kcl import LIMIT, kill, terminate
from support.java_several import SHARDS, SeveralStreams, compiled

pytestmark = [pytest.mark.xdist_group("java"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("classes"))


@pytest.fixture
def app(kinesis: Any, dynamodb: Any, moto_endpoint: str, classes: Path, tmp_path: Path) -> SeveralStreams:
    return SeveralStreams(kinesis, dynamodb, moto_endpoint, classes, tmp_path)


def filled_by_kainite(app: SeveralStreams) -> None:
    """Fills the lease table; Java waits for up to 30 s before it fills an empty one."""
    app.table.create()
    for stream, serialized in zip(app.streams, app.ids, strict=True):
        settings = StreamSettings(stream, initial_position=InitialPosition.TRIM_HORIZON)
        asyncio.run(create_missing(app.table, StreamClient(app.kinesis, stream, id=serialized), settings, ()))


def test_each_goes_on_where_the_other_one_stopped(app: SeveralStreams) -> None:
    filled_by_kainite(app)
    put: set[str] = set()

    def put_and_wait(prefix: str) -> None:
        put.update(app.put(prefix))
        app.eventually(lambda: app.payloads() >= put and app.checkpointed(), f"one of the records {prefix}")

    with app.java("w") as java:
        put_and_wait("1")
        kill(java)
    with app.kainite("w") as kainite:
        put_and_wait("2")
        terminate(kainite)
        assert kainite.returncode == 0
    with app.java("w"):
        put_and_wait("3")

    # Everything was checkpointed when a worker ended, so nothing may come again; and each under its own stream's key.
    assert len(app.delivered()) == len(put) == 3 * 2 * SHARDS
    for key, _, payload in app.delivered():
        assert key.split(":")[1] == payload.split("-", 1)[1].rpartition("-")[0]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_java_makes_the_same_items_and_the_two_share_the_leases(app: SeveralStreams, dynamodb: Any) -> None:
    put = app.put("1")
    with app.java("java") as java:
        # Java fills an empty table after up to 30 s, and syncs each further stream a minute later.
        app.eventually(lambda: app.payloads() >= put, "a record under Java", 4 * LIMIT)
        theirs = app.items()
        with app.kainite("kainite"):
            app.eventually(lambda: (app.owned("java"), app.owned("kainite")) == (SHARDS, SHARDS), "an even split")
            put |= app.put("2")
            app.eventually(lambda: app.payloads() >= put, "a record of the shared fleet")
            kill(java)
            put |= app.put("3")
            app.eventually(lambda: app.owned("kainite") == 2 * SHARDS, "Kainite's take-over")
            app.eventually(lambda: app.payloads() >= put, "a record after Java's death")

    dynamodb.delete_table(TableName=app.name)
    filled_by_kainite(app)
    ours = app.items()
    moving = {"leaseOwner", "leaseCounter", "checkpoint", "checkpointSubSequenceNumber", "throughputKBps"}
    assert {key: _but(item, moving) for key, item in ours.items()} == {
        key: _but(item, moving) for key, item in theirs.items()
    }
    assert {lease.checkpoint for lease in LeaseTable(dynamodb, app.name).scan()} == {TRIM_HORIZON}


def _but(item: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}
