"""One application under the real Java daemon and Kainite: one after the other, and both at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.java_kcl import AS_2X, Application, kill, terminate
from support.kinesis_local import client_of, kinesis_local

pytestmark = [pytest.mark.xdist_group("java"), pytest.mark.timeout(300)]

SHARDS = 4
OpenApplication = Callable[..., Application]


@pytest.fixture(scope="module")
def kinesis_endpoint() -> Iterator[str]:
    with kinesis_local() as endpoint:
        yield endpoint


@pytest.fixture
def application(kinesis_endpoint: str, moto_endpoint: str, dynamodb: Any, tmp_path: Path) -> OpenApplication:
    def open_application(**keys: str) -> Application:
        client = client_of(kinesis_endpoint)
        return Application(client, dynamodb, kinesis_endpoint, moto_endpoint, tmp_path, SHARDS, keys)

    return open_application


def batches(prefix: str) -> Iterator[list[str]]:
    """Payloads for each shard, none of them twice."""
    return ([f"{prefix}-{number}-{shard}" for shard in range(SHARDS)] for number in itertools.count())


def test_each_daemon_goes_on_where_the_other_one_stopped(application: OpenApplication) -> None:
    app, records = application(**AS_2X), batches("r")
    put: set[str] = set()

    def put_and_wait() -> None:
        payloads = next(records)
        app.put(*payloads)
        put.update(payloads)
        app.eventually(lambda: app.payloads() >= put and checkpointed(app), f"one of {payloads}")

    with app.java("w") as java:
        put_and_wait()
        terminate(java)
    with app.kainite("w") as kainite:
        put_and_wait()
        kill(kainite)
    with app.java("w") as java:
        put_and_wait()
        kill(java)
    with app.kainite("w") as kainite:
        put_and_wait()
        terminate(kainite)
        assert kainite.returncode == 0

    # Everything was checkpointed when a daemon ended, so nothing may come again.
    sequences = [record.sequence for record in app.delivered()]
    assert len(sequences) == len(set(sequences)) == len(put)


def test_a_mixed_fleet_shares_the_leases_and_survives_either_ones_death(application: OpenApplication) -> None:
    app, records = application(**AS_2X), batches("m")
    put: set[str] = set()

    def put_some() -> None:
        payloads = next(records)
        app.put(*payloads)
        put.update(payloads)

    with app.java("java") as java, app.kainite("kainite") as kainite:
        put_some()
        app.eventually(lambda: (app.owned("java"), app.owned("kainite")) == (2, 2), "an even split")
        put_some()
        app.eventually(lambda: app.payloads() >= put, "a record of the shared fleet")
        kill(java)
        put_some()
        app.eventually(lambda: app.owned("kainite") == SHARDS, "Kainite's take-over")
        app.eventually(lambda: app.payloads() >= put, "a record after Java's death")
        with app.java("java"):
            app.eventually(lambda: (app.owned("java"), app.owned("kainite")) == (2, 2), "an even split again")
            put_some()
            app.eventually(lambda: app.payloads() >= put, "a record after Java's return")
            kill(kainite)
            put_some()
            app.eventually(lambda: app.owned("java") == SHARDS, "Java's take-over")
            app.eventually(lambda: app.payloads() >= put, "a record after Kainite's death")


def test_a_java_leader_assigns_leases_to_kainite_which_goes_on_alone_without_it(application: OpenApplication) -> None:
    # KCL 3's own way, the default since: its leader balances the measured throughput.
    app, records = application(), batches("x" * 5000)
    put: set[str] = set()

    def put_some() -> bool:
        payloads = next(records)
        app.put(*payloads)
        put.update(payloads)
        return True

    with app.java("java") as java:
        put_some()
        app.eventually(lambda: app.payloads() >= put, "a record of Java's own fleet")
        with app.kainite("kainite") as kainite:
            app.eventually(lambda: put_some() and app.owned("kainite"), "an assignment by the leader")
            app.eventually(lambda: app.payloads() >= put, "a record of the shared fleet")
            assert app.payloads("kainite")
            kill(java)
            put_some()
            app.eventually(lambda: app.owned("kainite") == SHARDS, "Kainite's take-over")
            app.eventually(lambda: app.payloads() >= put, "a record after the leader's death")
            terminate(kainite)
            assert kainite.returncode == 0
            assert not app.workers() & {"kainite"}


def checkpointed(app: Application) -> bool:
    """Whether every record that was delivered is below its shard's checkpoint."""
    leases = app.leases()
    return all(int(leases[record.shard].checkpoint.sequence) >= record.sequence for record in app.delivered())
