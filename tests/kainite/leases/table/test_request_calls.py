"""Writes of requests: each on the condition that the request, and whoever matters, is as it was read."""

from __future__ import annotations

from dataclasses import replace

from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState

ASKED = LeaseRequest("1", RequestKind.MOVE, "ada", "new")
WORKING = ASKED.now(RequestState.WORKING)
HANDED = ASKED.now(RequestState.HANDED, counter=1)
LEASE = Lease("s", "old")


def test_a_request_changes_only_as_it_was_read_and_for_its_owner(table: LeaseTable) -> None:
    calls = table.requests
    assert calls.ask("s", ASKED) is None, "there is no lease, and none is made"
    assert table.get("s") is None
    table.put_new(LEASE)
    assert calls.ask("s", ASKED) == replace(LEASE, request=ASKED)
    assert calls.answer("s", WORKING, ASKED) is None
    assert calls.answer("s", ASKED, WORKING, "another") is None
    assert calls.answer("s", ASKED, WORKING, "old") == replace(LEASE, request=WORKING)
    assert calls.answer("s", WORKING, None) == LEASE


def test_a_hand_off_gives_the_lease_away_once_and_raises_the_counter(table: LeaseTable) -> None:
    calls = table.requests
    table.put_new(LEASE)
    calls.ask("s", WORKING)
    moved = replace(LEASE, owner="new", counter=1, switches=1, request=HANDED, moved_to="new")
    assert calls.move(replace(LEASE, owner="other"), WORKING, HANDED) is None
    assert calls.move(LEASE, ASKED, HANDED) is None
    assert calls.move(LEASE, WORKING, HANDED) == moved
    assert (moved.just_handed, moved.stays) == (True, True)
    assert calls.move(LEASE, WORKING, HANDED) is None
    assert table.renew(LEASE, doubtful=True) is None, "its former holder has lost it"


def test_who_else_takes_a_lease_ends_its_stay(table: LeaseTable) -> None:
    table.put_new(replace(LEASE, owner="new", moved_to="new"))
    lease = table.get("s")
    assert lease is not None
    again = table.take(lease, "new")
    assert again is not None
    assert again.moved_to == "new"
    other = table.take(again, "other")
    assert other is not None
    assert other.moved_to is None


def test_a_hand_off_that_arrives_late_gives_away_no_lease_that_its_holder_has_taken_again(table: LeaseTable) -> None:
    """Sends the write behind the next acquisition: its sender had stopped waiting for it, and has a child again."""
    table.put_new(LEASE)
    asked = table.requests.ask("s", WORKING)
    assert asked is not None
    again = table.take(asked, "old")
    assert again is not None
    assert table.requests.move(asked, WORKING, HANDED) is None
    assert table.get("s") == again
