"""Decides whether a process owns the log partition or follows its owner. No I/O, no clock.

Every process of an application that has units of work to append is a *member*. One member owns the log partition; the
others append through it. All members look at HEAD; which of them owns the partition is decided by HEAD's conditional
write and by the fence alone (:mod:`kainite.owner.mount`). This machine decides when to look, when to claim and whom
to connect to. It may decide wrongly at any time: a needless claim costs a change of owners, and an append that
fails is sent to the next owner.

==============  ===============================================  ===================================================
state           meaning                                          under way
==============  ===============================================  ===================================================
SEEKING         no owner is known                                a look at HEAD, now or after a pause
CLAIMING        HEAD was free                                    a mount, and the loading of the log's state
OWNING          this member serves the log                       nothing
CONNECTING      HEAD names an owner                              a connection, and a look at HEAD now and then: the
                                                                 owner may never serve, and be fenced meanwhile
FOLLOWING       this member appends through the owner            the connection, and a look at HEAD now and then
STOPPED         for good                                         nothing
==============  ===============================================  ===================================================

==============  ======================================  ==========================================================
state           event                                   next
==============  ======================================  ==========================================================
SEEKING         HEAD is free                            CLAIMING
SEEKING         HEAD is held, its owner has an address  CONNECTING
SEEKING         HEAD is held, no address                SEEKING, after a pause: the owner, on another host, listens on
                                                        its loopback interface alone
SEEKING         HEAD is not read                        SEEKING, after a pause
CLAIMING        mounted                                 OWNING
CLAIMING        not mounted: held, unavailable          SEEKING; after a pause that grows
CLAIMING        fenced before the log is loaded         the same; the claim counts (below)
OWNING          fenced                                  SEEKING, at once
OWNING          handed over: a person has asked         SEEKING, after STAND_BACK looks of the others: one that looks
                                                        meanwhile claims
CONNECTING      welcomed                                FOLLOWING
CONNECTING      refused                                 SEEKING, at once; the generation counts as gone (below)
CONNECTING,     cut, silent, or sent elsewhere          SEEKING; after a pause that grows until a welcome
FOLLOWING
CONNECTING,     HEAD is free                            CLAIMING, without the connection
FOLLOWING
CONNECTING,     HEAD names another generation           CONNECTING, to that one; without an address SEEKING, after a
FOLLOWING                                               pause
SEEKING,        HEAD is free, or its owner's port       SEEKING, after a pause, GIVE_WAY times running (below)
CONNECTING,     refused, and the last owner's targets
FOLLOWING       were others than this member's
CONNECTING,     HEAD is held as before, or not read     the same
FOLLOWING
any             stop                                    STOPPED
==============  ======================================  ==========================================================

**Why a refused connection is evidence, and why it ends.** Every member opens its port before it claims, and closes it
after it has released. So a port that refuses means that the owner's process is gone, and HEAD need not be waited for. A
broken network may refuse too, and two members that refuse each other would fence each other for ever. So a member
believes a refusal once: after it was fenced in a reign that began with a refusal, it waits for the lease, until
some owner has welcomed it (then its network works). A reign begins with the write of HEAD, and not when the log is
loaded: members that load slowly would fence each other for ever before any of them serves. So each member makes at most
one such claim between two welcomes; with N members that reach nobody there are at most N claims, and then the last
owner's heartbeats keep all others out.

**Why a member with other targets gives way.** Members whose settings files assign tables to targets otherwise would
take turns in noting their own assignment in the log, with each change of owners. So such a member first leaves the log
to those who agree with it, for :data:`GIVE_WAY` looks. Where nobody else claims, it does: its file is the newer one, or
the only one.

**What a crash leaves.** Nothing of this is durable. A member that dies as SEEKING, CONNECTING or FOLLOWING leaves
nothing. One that dies as CLAIMING or OWNING leaves a HEAD that others claim: at once where they can tell that the
process is gone (same host, or its port refuses), else when its lease has run out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.retry import Backoff
from kainite.peers.address import OwnerAddress

SEEK_BACKOFF: Final = Backoff((0.02, 0.05, 0.1, 0.2, 0.5, 1.0), jitter=0.5)
"""Pauses between looks at HEAD while no owner is found. Members that lose a claim must not come back together."""


STAND_BACK: Final = 4
"""For so many looks of the others a member that has handed the log over leaves it to them."""

GIVE_WAY: Final = 4
"""For so many looks of the others a member whose targets are not the log's leaves the log to them."""


class MemberState(Enum):
    SEEKING = auto()
    CLAIMING = auto()
    OWNING = auto()
    CONNECTING = auto()
    FOLLOWING = auto()
    STOPPED = auto()


_WITH_OWNER: Final = (MemberState.CONNECTING, MemberState.FOLLOWING)


@dataclass(frozen=True, slots=True)
class HeadSeen:
    """HEAD was read.

    Attributes:
        generation: the generation of the owner; 0 for a partition that was never mounted.
        free: whether the partition may be claimed now, for reasons other than a refused connection.
        address: the address at which this process reaches the owner; None when it does not reach the owner.
        differs: whether the owner, or the last one, has other targets than this process.
    """

    generation: int
    free: bool
    address: OwnerAddress | None = None
    differs: bool = False


@dataclass(frozen=True, slots=True)
class HeadUnread:
    """The store did not answer."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """The partition is mounted, and its state is loaded."""


@dataclass(frozen=True, slots=True)
class NotMounted:
    """The claim did not succeed: another member was faster to write HEAD, or the store did not answer."""


@dataclass(frozen=True, slots=True)
class Welcomed:
    """The owner has taken the connection."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nobody listens at the owner's address."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ended, stayed silent, was not made in time, or its peer does not own the log."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another member has mounted the partition since this one has, whether or not this one has loaded the log."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """This member has released the partition, because a person has asked for it."""


Event: TypeAlias = HeadSeen | HeadUnread | Mounted | NotMounted | Welcomed | Refused | Cut | Fenced | HandedOver


@dataclass(frozen=True, slots=True)
class Look:
    """Read HEAD after ``after`` seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class Claim:
    """Mount the partition; the owner of the generation ``gone`` need not be waited for."""

    gone: int | None


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to the owner of a generation."""

    address: OwnerAddress
    generation: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Give up all actions under way: the connection, the look at HEAD, the claim."""


Action: TypeAlias = Look | Claim | Connect | Leave


class Member:
    """The membership of one process: :meth:`begin`, then :meth:`on` for each event, in order.

    The caller carries the actions out, and reports no event of an action that it was told to leave.

    Args:
        watch: seconds between two looks at HEAD while the owner is followed, or connected to.
        wait: seconds between two looks while HEAD is held and nobody is reached.
        uniform: returns a random number from 0 to 1.
    """

    def __init__(self, watch: float, wait: float, uniform: Callable[[], float] = random.random) -> None:
        self.state = MemberState.SEEKING
        self.generation = 0
        """The generation that is followed, or connected to."""
        self._watch = watch
        self._wait = wait
        self._uniform = uniform
        self._failures = 0  # since the last welcome or mount
        self._gone: int | None = None  # a generation whose owner refused a connection
        self._claimed_gone = False  # whether the present reign began with a refusal
        self._trusts = True  # whether a refusal is believed
        self._gave_way = 0  # looks at which the partition could have been claimed, since the last welcome or mount

    def begin(self) -> tuple[Action, ...]:
        return (Look(0.0),)

    def stop(self) -> tuple[Action, ...]:
        """Ends the membership; no event has an effect from now on."""
        self.state = MemberState.STOPPED
        return (Leave(),)

    def on(self, event: Event) -> tuple[Action, ...]:
        """Takes an event; returns the actions to carry out, in order."""
        if self.state is MemberState.STOPPED:
            return ()
        match event:
            case HeadSeen():
                return self._seen(event)
            case HeadUnread():
                return (Look(self._watch),) if self.state in _WITH_OWNER else self._seek()
            case Mounted():
                self._enter(MemberState.OWNING)
                return ()
            case Welcomed():
                self._enter(MemberState.FOLLOWING)
                self._trusts = True
                return ()  # the look goes on
            case Refused():
                return self._refused()
            case Fenced():
                self._trusts = self._trusts and not self._claimed_gone
                return (Leave(), *self._seek())
            case HandedOver():
                return (Leave(), *self._seek(STAND_BACK * max(self._watch, self._wait)))
            case NotMounted() | Cut():
                return (Leave(), *self._seek())

    def _enter(self, state: MemberState) -> None:
        self.state = state
        self._failures = self._gave_way = 0

    def _seek(self, pause: float | None = None) -> tuple[Action, ...]:
        self.state = MemberState.SEEKING
        if pause is None:
            self._failures += 1
            # The first failure is most likely the owner's end, and its successor is wanted at once.
            pause = SEEK_BACKOFF.after(self._failures - 1, self._uniform) if self._failures > 1 else 0.0
        return (Look(pause),)

    def _refused(self) -> tuple[Action, ...]:
        if self._trusts:
            self._gone = self.generation
        return (Leave(), *self._seek())

    def _seen(self, head: HeadSeen) -> tuple[Action, ...]:
        following = self.state in _WITH_OWNER
        refused = head.generation == self._gone
        if head.free or refused:
            if head.differs and self._gave_way < GIVE_WAY:
                self._gave_way += 1
                return (*((Leave(),) if following else ()), *self._seek(max(self._watch, self._wait)))
            self.state = MemberState.CLAIMING
            self._claimed_gone = refused and not head.free
            self._gone = None
            return (Leave(), Claim(head.generation if refused else None))
        if following and head.generation == self.generation:
            return (Look(self._watch),)
        if head.address is None:
            return (Leave(), *self._seek(self._wait)) if following else self._seek(self._wait)
        self.state = MemberState.CONNECTING
        self.generation = head.generation
        return (Leave(), Connect(head.address, head.generation), Look(self._watch))
