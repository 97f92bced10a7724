"""A restart and a move as operations: asked of the holder, waited for, withdrawn, recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestState
from kainite.log.format.entry import OperationResult
from kainite.operations import leases as of_leases
from kainite.operations.carrying_out import Operations
from kainite.operations.leases import Patience, change_lease, patience
from kainite.operations.operation import LeaseOperation, MoveLease, RestartChild
from kainite.settings import load
from kainite.store.dynamodb import DynamoDBStore
from support.lease_commands import LeaseCommands
from support.names import unique

FIRST = "shardId-000000000000"
SOON = Patience(0.5, 0.5)
LONG = Patience(30, 30)
RESTART, MOVE = RestartChild(FIRST), MoveLease(FIRST, "w2")

Step = Callable[[LeaseRequest], LeaseRequest | None]


@contextmanager
def answering(table: LeaseTable, *steps: Step) -> Iterator[None]:
    """Answers the first request on the shard with one step after the other, as workers do."""
    ended = threading.Event()

    def answer() -> None:
        left = list(steps)
        while left and not ended.wait(0.02):
            lease = table.get(FIRST)
            if lease is not None and lease.request is not None and not lease.request.ended:
                table.requests.answer(FIRST, lease.request, left.pop(0)(lease.request))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def to(state: RequestState, said: str = "") -> Step:
    return lambda request: request.now(state, said)


def change(world: LeaseCommands, operation: LeaseOperation, limits: Patience) -> tuple[OperationResult, str]:
    outcome = change_lease(world.table, operation, "ada", limits)
    return outcome.result, outcome.sentence


def request_left(world: LeaseCommands) -> LeaseRequest | None:
    lease = world.table.get(FIRST)
    assert lease is not None
    return lease.request


@pytest.mark.parametrize(
    ("state", "result"), [(RequestState.DONE, OperationResult.DONE), (RequestState.REFUSED, OperationResult.REFUSED)]
)
def test_the_outcome_is_what_the_holder_says(
    world: LeaseCommands, state: RequestState, result: OperationResult
) -> None:
    world.hold(FIRST)
    with answering(world.table, to(RequestState.WORKING), to(state, "so it was")):
        assert change(world, RESTART, LONG) == (result, "so it was")


@pytest.mark.parametrize("operation", [RESTART, MOVE])
def test_a_dead_holder_is_told_and_the_request_is_withdrawn(world: LeaseCommands, operation: LeaseOperation) -> None:
    world.hold(FIRST)
    result, said = change(world, operation, SOON)
    assert (result, said) == (
        OperationResult.REFUSED, "worker w has not renewed the lease for 0.5 s: it is dead, or stands still"
    )  # fmt: skip
    assert request_left(world) is None


def test_a_holder_that_renews_and_knows_no_requests_is_told(world: LeaseCommands) -> None:
    with world.renewing(world.hold(FIRST)):
        result, said = change(world, RESTART, SOON)
    assert result is OperationResult.REFUSED
    assert "worker w renews the lease and has not taken the request up within 0.5 s: it is a Java worker" in said
    assert request_left(world) is None


def test_a_target_that_does_not_answer_is_told(world: LeaseCommands) -> None:
    with world.renewing(world.hold(FIRST)):
        result, said = change(world, MOVE, SOON)
    assert result is OperationResult.REFUSED
    assert said.startswith("worker w2 has not answered within 0.5 s: it does not run")
    assert request_left(world) is None


def test_a_target_has_accepted_and_a_java_holder_is_told(world: LeaseCommands) -> None:
    with world.renewing(world.hold(FIRST)), answering(world.table, to(RequestState.ACCEPTED)):
        result, said = change(world, MOVE, Patience(2, 2))
    assert result is OperationResult.REFUSED
    assert "worker w renews the lease and has not taken the request up" in said
    assert request_left(world) is None


@pytest.mark.parametrize(
    ("operation", "state", "said"),
    [
        (RESTART, RequestState.WORKING, "worker w has ended the child, and the next one is not ready yet"),
        (
            MOVE,
            RequestState.WORKING,
            "worker w is still ending the child of shardId-000000000000; the lease goes to w2",
        ),
        (MOVE, RequestState.HANDED, "worker w has given the lease away, and w2 has not taken it yet"),
    ],
)
def test_what_is_under_way_is_not_withdrawn(
    world: LeaseCommands, operation: LeaseOperation, state: RequestState, said: str
) -> None:
    world.hold(FIRST)
    with answering(world.table, to(state)):
        result, sentence = change(world, operation, Patience(30, 0.5))
    assert result is OperationResult.ASKED
    assert sentence.startswith(said)
    left = request_left(world)
    assert left is not None
    assert left.state is state


def test_another_request_in_its_place_is_told(world: LeaseCommands) -> None:
    world.hold(FIRST)
    with answering(world.table, lambda request: LeaseRequest("other", request.what, "bob")):
        result, said = change(world, RESTART, LONG)
    assert result is OperationResult.REFUSED
    assert said.startswith("bob has made another request in place of this one")


def test_an_interrupted_caller_withdraws_its_request(world: LeaseCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    world.hold(FIRST)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{of_leases.__name__}.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        change(world, MOVE, LONG)
    assert request_left(world) is None


@pytest.mark.parametrize(
    ("lease", "operation", "said"),
    [
        (None, RESTART, "shard shardId-000000000000 has no lease"),
        (Lease(FIRST, "w", checkpoint=SHARD_END), RESTART, "is finished"),
        (Lease(FIRST), MOVE, "no worker has shard"),
        (Lease(FIRST, "w2"), MOVE, "worker w2 has shard shardId-000000000000 already"),
        (Lease(FIRST, "new", checkpoint_owner="w"), RESTART, "is being handed over from w to new"),
    ],
)
def test_where_nobody_can_be_asked_nothing_is_left(
    world: LeaseCommands, lease: Lease | None, operation: LeaseOperation, said: str
) -> None:
    if lease is not None:
        world.table.put_new(lease)
    assert said in of_leases.preview_lease(world.table, operation).does
    result, sentence = change(world, operation, LONG)
    assert result is OperationResult.REFUSED
    assert said in sentence
    assert lease is None or request_left(world) is None


def test_a_move_may_take_rounds_of_the_target_and_the_childs_grace() -> None:
    assert patience(RESTART, 10, 30) == Patience(15, 55)
    assert patience(MOVE, 10, 30) == Patience(35, 55)


def test_it_is_recorded_with_who_why_and_what_became_of_it(world: LeaseCommands, dynamodb: Any) -> None:
    name = unique("log")
    DynamoDBStore(dynamodb, name).create()
    with world.properties.open("a") as file:
        file.write(f"\nunitsOfWork = true\nlogTableName = {name}\n")
    operations = Operations(load(world.properties, needs=("applicationName", "streamName")))
    world.hold(FIRST, Checkpoint("9"))
    assert "at worker w as in a crash" in operations.preview(RESTART).does
    assert "it goes on after checkpoint 9" in operations.preview(RESTART).does
    assert "give the lease to worker w2, where it stays" in operations.preview(MOVE).does
    with answering(world.table, to(RequestState.WORKING), to(RequestState.DONE, "child 7 has begun")):
        assert operations.carry_out(RESTART, "ada", "hangs").sentence == "child 7 has begun"
    operations.carry_out(MoveLease(FIRST, "w"), "ada")
    restarted, moved = operations.history()
    assert (restarted.who, restarted.why, restarted.what, restarted.about, restarted.result, restarted.outcome) == (
        "ada", "hangs", "restart a child", FIRST, "done", "child 7 has begun"
    )  # fmt: skip
    assert (moved.what, moved.about, moved.result) == ("move a lease", f"{FIRST} to w", "refused")


def test_the_commands_say_what_became_of_it(world: LeaseCommands) -> None:
    world.hold(FIRST)
    with answering(world.table, to(RequestState.WORKING), to(RequestState.DONE, "child 7 has begun")):
        done = world.kainite("restart-child", FIRST, answer="y\n")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "child 7 has begun")
    assert "This will end the child" in done.stdout
    aborted = world.kainite("move", FIRST, "w2", answer="n\n")
    assert aborted.exit_code == 1
    refused = world.kainite("move", FIRST, "w", "--yes")
    assert (refused.exit_code, refused.stderr.strip()) == (1, f"kainite: refused: worker w has shard {FIRST} already")
    shown = world.kainite("show", "--json").stdout
    assert '"asked": null' in shown
    began = time.monotonic()
    assert world.kainite("restart-child", "shardId-9", "--yes").exit_code == 1
    assert time.monotonic() - began < 20
