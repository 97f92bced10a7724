"""Who owns and who follows: each row of the module's table, and any number of members that look, claim and refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.peers.address import OwnerAddress
from kainite.peers.sharing.membership import (
    GIVE_WAY,
    STAND_BACK,
    Action,
    Claim,
    Connect,
    Cut,
    Event,
    Fenced,
    HandedOver,
    HeadSeen,
    HeadUnread,
    Leave,
    Look,
    Member,
    MemberState,
    Mounted,
    NotMounted,
    Refused,
    Welcomed,
)

HERE = OwnerAddress("10.0.0.7", 7070)
WATCH, WAIT = 3.0, 1.0
HELD = HeadSeen(4, free=False, address=HERE)
FREE = HeadSeen(4, free=True, address=HERE)
OTHER_TARGETS = replace(FREE, differs=True)
NEXT = HeadSeen(5, free=False, address=HERE)
CONNECT, CLAIM, LOOK, LEAVE = Connect(HERE, 4), Claim(None), Look(0.0), Leave()
WATCHING, WAITING = Look(WATCH), Look(WAIT)
FOLLOWING = (HELD, Welcomed())
OWNING = (FREE, Mounted())


def member_after(events: Sequence[Event]) -> Member:
    member = Member(WATCH, WAIT, uniform=lambda: 0.0)
    member.begin()
    for event in events:
        member.on(event)
    return member


@pytest.mark.parametrize(
    ("before", "event", "state", "actions"),
    [
        ((), FREE, MemberState.CLAIMING, (LEAVE, CLAIM)),
        ((), HELD, MemberState.CONNECTING, (LEAVE, CONNECT, WATCHING)),
        ((), HeadSeen(4, free=False), MemberState.SEEKING, (WAITING,)),
        ((), HeadUnread(), MemberState.SEEKING, (LOOK,)),
        ((HeadUnread(),), HeadUnread(), MemberState.SEEKING, (Look(0.02),)),
        ((FREE,), Mounted(), MemberState.OWNING, ()),
        (OWNING, HandedOver(), MemberState.SEEKING, (LEAVE, Look(STAND_BACK * WATCH))),
        ((FREE,), NotMounted(), MemberState.SEEKING, (LEAVE, LOOK)),
        ((FREE, NotMounted(), FREE), NotMounted(), MemberState.SEEKING, (LEAVE, Look(0.02))),
        (OWNING, Fenced(), MemberState.SEEKING, (LEAVE, LOOK)),
        ((FREE,), Fenced(), MemberState.SEEKING, (LEAVE, LOOK)),
        ((FREE, Fenced(), FREE), Fenced(), MemberState.SEEKING, (LEAVE, Look(0.02))),
        ((HELD,), Welcomed(), MemberState.FOLLOWING, ()),
        ((HELD,), Refused(), MemberState.SEEKING, (LEAVE, LOOK)),
        ((HELD, Refused()), HELD, MemberState.CLAIMING, (LEAVE, Claim(4))),
        ((HELD, Refused()), NEXT, MemberState.CONNECTING, (LEAVE, Connect(HERE, 5), WATCHING)),
        ((HELD,), Cut(), MemberState.SEEKING, (LEAVE, LOOK)),
        ((HELD, Cut(), HELD), Cut(), MemberState.SEEKING, (LEAVE, Look(0.02))),
        ((HELD,), FREE, MemberState.CLAIMING, (LEAVE, CLAIM)),
        ((HELD,), HELD, MemberState.CONNECTING, (WATCHING,)),
        ((HELD,), HeadUnread(), MemberState.CONNECTING, (WATCHING,)),
        ((HELD,), NEXT, MemberState.CONNECTING, (LEAVE, Connect(HERE, 5), WATCHING)),
        ((HELD,), HeadSeen(5, free=False), MemberState.SEEKING, (LEAVE, WAITING)),
        (FOLLOWING, Cut(), MemberState.SEEKING, (LEAVE, LOOK)),
        (FOLLOWING, FREE, MemberState.CLAIMING, (LEAVE, CLAIM)),
        (FOLLOWING, HELD, MemberState.FOLLOWING, (WATCHING,)),
        (FOLLOWING, HeadUnread(), MemberState.FOLLOWING, (WATCHING,)),
        (FOLLOWING, NEXT, MemberState.CONNECTING, (LEAVE, Connect(HERE, 5), WATCHING)),
        (FOLLOWING, HeadSeen(5, free=False), MemberState.SEEKING, (LEAVE, WAITING)),
        ((), OTHER_TARGETS, MemberState.SEEKING, (WATCHING,)),
        (FOLLOWING, OTHER_TARGETS, MemberState.SEEKING, (LEAVE, WATCHING)),
        ((HELD, Refused()), replace(HELD, differs=True), MemberState.SEEKING, (WATCHING,)),
        (FOLLOWING, replace(HELD, differs=True), MemberState.FOLLOWING, (WATCHING,)),
        ((OTHER_TARGETS,) * GIVE_WAY, OTHER_TARGETS, MemberState.CLAIMING, (LEAVE, CLAIM)),
        (((OTHER_TARGETS,) * GIVE_WAY + FOLLOWING), OTHER_TARGETS, MemberState.SEEKING, (LEAVE, WATCHING)),
    ],
)
def test_each_row_of_the_table(
    before: tuple[Event, ...], event: Event, state: MemberState, actions: tuple[Action, ...]
) -> None:
    member = member_after(before)
    assert (member.on(event), member.state) == (actions, state)


@pytest.mark.parametrize("before", [(), (FREE,), OWNING, (HELD,), FOLLOWING])
def test_a_stop_ends_it_in_every_state(before: tuple[Event, ...]) -> None:
    member = member_after(before)
    assert member.stop() == (LEAVE,)
    assert member.on(FREE) == ()
    assert member.state is MemberState.STOPPED


def test_a_refusal_is_believed_once_until_an_owner_has_welcomed() -> None:
    member = member_after((HELD, Refused(), HELD, Mounted(), Fenced()))
    other = HeadSeen(6, free=False, address=HERE)
    assert member.on(other) == (LEAVE, Connect(HERE, 6), WATCHING)
    member.on(Refused())
    assert member.on(other) == (LEAVE, Connect(HERE, 6), WATCHING), "it must wait for the lease"
    member.on(Welcomed())
    member.on(Cut())
    member.on(other)
    member.on(Refused())
    assert member.on(other) == (LEAVE, Claim(6))


EVENTS = st.one_of(
    st.builds(HeadSeen, st.integers(0, 3), st.booleans(), st.none() | st.just(HERE)),
    st.sampled_from([HeadUnread(), Mounted(), NotMounted(), Welcomed(), Refused(), Cut(), Fenced()]),
)
FITTING: dict[MemberState, tuple[type[Event], ...]] = {
    MemberState.SEEKING: (HeadSeen, HeadUnread),
    MemberState.CLAIMING: (Mounted, NotMounted, Fenced),
    MemberState.OWNING: (Fenced,),
    MemberState.CONNECTING: (Welcomed, Refused, Cut, HeadSeen, HeadUnread),
    MemberState.FOLLOWING: (Cut, HeadSeen, HeadUnread),
}
UNDER_WAY: dict[MemberState, list[type[Action]]] = {
    MemberState.SEEKING: [Look],
    MemberState.CLAIMING: [Claim],
    MemberState.OWNING: [Claim],
    MemberState.CONNECTING: [Connect, Look],
    MemberState.FOLLOWING: [Connect, Look],
}


@given(st.lists(EVENTS, max_size=60))
def test_what_is_under_way_fits_the_state(events: list[Event]) -> None:
    """Makes sure that something is under way that ends the state, and never two things that exclude each other."""
    member = Member(WATCH, WAIT)
    under_way: list[type[Action]] = []

    def carry_out(actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Leave):
                under_way.clear()
            else:
                under_way.append(type(action))

    carry_out(member.begin())
    for event in events:
        if not isinstance(event, FITTING[member.state]):
            continue
        if isinstance(event, HeadSeen | HeadUnread):
            under_way.remove(Look)
        carry_out(member.on(event))
        assert under_way == UNDER_WAY[member.state]


@dataclass
class Network:
    """Members whose claims always succeed, after some time, and among whom every connection is refused."""

    members: list[Member]
    generation: int = 0
    owner: int | None = None
    claims: int = 0

    def look(self, who: int) -> None:
        """Lets a member look at HEAD, and go on until it must wait."""
        member = self.members[who]
        if member.state in (MemberState.OWNING, MemberState.CLAIMING):
            return
        for _ in range(3):
            actions = member.on(HeadSeen(self.generation, free=self.owner is None, address=HERE))
            if any(isinstance(action, Claim) for action in actions):
                self._mount(who)
                return
            if any(isinstance(action, Connect) for action in actions):
                member.on(Refused())

    def _mount(self, who: int) -> None:
        self.claims += 1
        self.generation += 1
        before, self.owner = self.owner, who
        if before is not None:
            self.members[before].on(Fenced())

    def load(self, who: int) -> None:
        """Lets a member that has claimed the partition finish with loading the log."""
        if self.members[who].state is MemberState.CLAIMING:
            self.members[who].on(Mounted())


@given(st.integers(2, 6), st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200))
def test_members_that_refuse_each_other_do_not_fence_each_other_for_ever(
    count: int, steps: list[tuple[int, bool]]
) -> None:
    network = Network([Member(WATCH, WAIT) for _ in range(count)])
    for member in network.members:
        member.begin()
    for who, loads in steps:
        (network.load if loads else network.look)(who % count)
    assert network.claims <= count + 1
