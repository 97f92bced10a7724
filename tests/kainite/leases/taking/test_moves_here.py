"""Moves to this worker: accepted while there is room, refused with the reason, expected for a while."""

from __future__ import annotations

from kainite.kinesis.client import StreamClient
from kainite.leases.holding.held_leases import CurrentSettings, HeldLeases
from kainite.leases.streams import only
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState
from kainite.leases.taking.moves_here import EXPECTED_S, MovesHere
from kainite.observe.meter import SILENT
from kainite.settings import LeaseSettings
from support.keepers import STREAM, Clock


def asked(table: LeaseTable, key: str, to: str, kind: RequestKind = RequestKind.MOVE) -> None:
    table.put_new(Lease(key, "old"))
    assert table.requests.ask(key, LeaseRequest(key, kind, "ada", to)) is not None


def states(table: LeaseTable) -> dict[str, RequestState | None]:
    return {lease.key: lease.request.state if lease.request else None for lease in table.scan()}


async def test_what_is_meant_for_this_worker_alone_is_answered_and_expected_for_a_while(
    table: LeaseTable, stream: StreamClient
) -> None:
    clock = Clock()
    leases = LeaseSettings("app", table.name, "me", failover=12, max_leases=1)
    settings = CurrentSettings(leases, STREAM, only(stream, STREAM))
    held = HeldLeases(settings, clock, SILENT)
    moves = MovesHere(table, held, settings, clock)
    assert moves.rest is None
    asked(table, "mine", "me")
    asked(table, "others", "you")
    asked(table, "restart", "", RequestKind.RESTART)
    await moves.answer(table.scan(), None)
    assert states(table) == {
        "mine": RequestState.ACCEPTED, "others": RequestState.ASKED, "restart": RequestState.ASKED
    }  # fmt: skip
    assert moves.rest == 1.0
    clock.advance(EXPECTED_S + 1)
    await moves.answer(table.scan(), None)
    assert moves.rest is None, "it has been looked for long enough"
    held.add(Lease("full", "me", 1), clock())
    asked(table, "more", "me")
    asked(table, "full", "me")
    await moves.answer(table.scan(), None)
    assert (states(table)["more"], states(table)["full"]) == (RequestState.REFUSED, RequestState.ASKED)


async def test_a_lease_of_a_stream_that_is_not_read_here_is_refused(table: LeaseTable) -> None:
    settings, clock = CurrentSettings(LeaseSettings("app", table.name, "me"), STREAM, {}), Clock()
    moves = MovesHere(table, HeldLeases(settings, clock, SILENT), settings, clock)
    asked(table, "1:other:2:shardId-0", "me")
    await moves.answer(table.scan(), None)
    assert states(table) == {"1:other:2:shardId-0": RequestState.REFUSED}


async def test_who_takes_no_lease_refuses_with_the_reason(table: LeaseTable) -> None:
    settings = CurrentSettings(LeaseSettings("app", table.name, "me"), STREAM, {})
    clock = Clock()
    moves = MovesHere(table, HeldLeases(settings, clock, SILENT), settings, clock)
    asked(table, "s", "me")
    await moves.answer(table.scan(), "it is stopping")
    lease = table.get("s")
    assert lease is not None
    assert lease.request is not None
    assert lease.request.said == "worker me does not take the lease: it is stopping"
    assert moves.rest is None
