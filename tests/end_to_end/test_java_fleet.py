"""One application under the real Java daemon and Kainite: one after the other, and both at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kainite.base.checkpoint import Checkpoint
from kainite.leases.table.request import LeaseRequest, RequestKind
from kainite.operations.leases import Patience, change_lease
from kainite.operations.operation import RestartChild
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


class Traffic:
    """Records for each shard, each payload once; ``put`` has all payloads so far."""

    def __init__(self, app: Application, prefix: str = "r") -> None:
        self.put: set[str] = set()
        self._app = app
        self._batches = ([f"{prefix}-{number}-{shard}" for shard in range(SHARDS)] for number in itertools.count())

    def flow(self) -> bool:
        """Puts a record on each shard; always true, so that it can stand in a condition."""
        payloads = next(self._batches)
        self._app.put(*payloads)
        self.put.update(payloads)
        return True

    def arrives(self, what: str) -> None:
        """Waits until a child has received each record."""
        self._app.eventually(lambda: self._app.payloads() >= self.put, what)


def test_each_daemon_goes_on_where_the_other_one_stopped(application: OpenApplication) -> None:
    app = application(**AS_2X)
    traffic = Traffic(app)

    def put_and_wait() -> None:
        traffic.flow()
        app.eventually(lambda: app.payloads() >= traffic.put and checkpointed(app), "one of the records")

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
    assert len(sequences) == len(set(sequences)) == len(traffic.put)


def test_java_knows_no_requests_and_its_writes_leave_kainites_attributes_where_they_are(
    application: OpenApplication,
) -> None:
    app = application(**AS_2X)
    traffic = Traffic(app)
    shards = sorted(app.leases())
    moved = LeaseRequest("m", RequestKind.MOVE, "ada", "nobody")
    for shard in shards:
        lease = app.table.requests.ask(shard, moved)
        assert lease is not None
        assert app.table.requests.move(lease, moved, moved) is not None
    with app.java("java"):
        traffic.flow()
        traffic.arrives("a record after Java took the leases")
        app.eventually(lambda: app.payloads() >= traffic.put and checkpointed(app), "Java's checkpoint")
        refused = change_lease(app.table, RestartChild(shards[0]), "ada", Patience(8, 8))
        assert "worker java renews the lease and has not taken the request up within 8 s" in refused.sentence
        leases = app.leases()
    assert {lease.owner for lease in leases.values()} == {"java"}
    assert {lease.moved_to for lease in leases.values()} == {"nobody"}
    assert {leases[shard].request for shard in shards[1:]} == {moved}
    assert leases[shards[0]].request is None, "it was withdrawn"


@pytest.mark.long
def test_a_mixed_fleet_shares_the_leases_and_survives_either_ones_death(application: OpenApplication) -> None:
    app = application(**AS_2X)
    traffic = Traffic(app)

    with app.java("java") as java, app.kainite("kainite") as kainite:
        traffic.flow()
        app.eventually(lambda: (app.owned("java"), app.owned("kainite")) == (2, 2), "an even split")
        traffic.flow()
        traffic.arrives("a record of the shared fleet")
        kill(java)
        traffic.flow()
        app.eventually(lambda: app.owned("kainite") == SHARDS, "Kainite's take-over")
        traffic.arrives("a record after Java's death")
        with app.java("java"):
            app.eventually(lambda: (app.owned("java"), app.owned("kainite")) == (2, 2), "an even split again")
            traffic.flow()
            traffic.arrives("a record after Java's return")
            kill(kainite)
            traffic.flow()
            app.eventually(lambda: app.owned("java") == SHARDS, "Java's take-over")
            traffic.arrives("a record after Kainite's death")


def test_a_java_leader_assigns_leases_to_kainite_which_goes_on_alone_without_it(application: OpenApplication) -> None:
    # KCL 3's own way, the default since: its leader balances the measured throughput.
    app = application()
    traffic = Traffic(app, "x" * 5000)

    with app.java("java") as java:
        traffic.flow()
        traffic.arrives("a record of Java's own fleet")
        with app.kainite("kainite") as kainite:
            app.eventually(lambda: traffic.flow() and app.owned("kainite"), "an assignment by the leader")
            # What was put before may all have reached Java.
            app.eventually(lambda: traffic.flow() and app.payloads("kainite"), "a record of the assigned lease")
            traffic.arrives("a record of the shared fleet")
            kill(java)
            traffic.flow()
            app.eventually(lambda: app.owned("kainite") == SHARDS, "Kainite's take-over")
            traffic.arrives("a record after the leader's death")
            terminate(kainite)
            assert kainite.returncode == 0
            assert not app.workers() & {"kainite"}


@pytest.mark.long
def test_a_java_leader_takes_leases_from_kainite_by_graceful_handoff(application: OpenApplication) -> None:
    app = application()
    traffic = Traffic(app, "x" * 5000)

    with app.java("first") as first:
        traffic.flow()
        traffic.arrives("a record of Java's own fleet")
        with app.kainite("kainite") as kainite:
            app.eventually(lambda: traffic.flow() and app.owned("kainite"), "an assignment by the leader")
            terminate(first)
            app.eventually(lambda: app.owned("kainite") == SHARDS, "Kainite's take-over")
            with app.java("second"):
                app.eventually(lambda: traffic.flow() and app.owned("second"), "a lease handed over to Java")
                # What was put before may all have reached Kainite.
                app.eventually(lambda: traffic.flow() and app.payloads("second"), "a record of the lease handed over")
                traffic.arrives("a record of the shared fleet")
                assert "lease handed over" in app.log("kainite")
                terminate(kainite)
                assert kainite.returncode == 0


def checkpointed(app: Application) -> bool:
    """Returns whether every delivered record is at or below its shard's checkpoint.

    A shard's first checkpoint is a sentinel: a daemon may have delivered a record without a checkpoint yet.
    """
    leases = app.leases()
    return all(leases[record.shard].checkpoint >= Checkpoint(str(record.sequence)) for record in app.delivered())
