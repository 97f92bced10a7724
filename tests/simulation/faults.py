"""The faults at an effect, and their times: decided by the seed and the effect's name alone.

An effect is one request to the world outside a process (a store, a stream, a target) and its reply. Its name says
who asks, for what, and for the how manieth time. What happens to it is a hash of seed and name. So a fault that is
left out (:attr:`Faults.left_out`) changes what follows from it and nothing else, which is what makes a failing run
shrinkable.

=============  ==========================================================================================
fault          what happens
=============  ==========================================================================================
slow           request or reply takes seconds
unsent         the request never arrives; the caller hears so
unanswered     the request has its effect; the caller hears that there was no answer
late           the caller hears that there was no answer; the request has its effect some time afterwards
resent         the client sends the request twice; the caller hears the second answer
again          the caller has its answer; the request arrives once more, some time afterwards
kill_before    the process is killed while the request is on its way: it arrives, or it does not
kill_after     the process is killed when the effect has happened, before it hears of it
freeze_before  the process stands still before the request is sent, for some time
freeze_after   the process stands still after the effect, before it hears of it
=============  ==========================================================================================

An outage ``held SERVICE NAME@HOST`` keeps a host's requests of that name on their way until it is over.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from simulation.loop import Hub, KilledError, Process

T = TypeVar("T")

KINDS = (
    "slow", "unsent", "unanswered", "late", "resent", "again", "kill_before", "kill_after", "freeze_before",
    "freeze_after",
)  # fmt: skip

AIMED = {
    "task_freezes": (("task ",), "target.apply", "freeze_before"),
    "copy_freezes": (("copy ",), "pg.connect", "freeze_before"),
    "prepare_freezes": (("task ",), ".prepare", "freeze_before"),
    "decide_freezes": (("task ",), "log.decide", "freeze_before"),
    "finish_freezes": (("task ",), ".finish", "freeze_before"),
    "resolve_kills": (("apply",), ".finish", "kill_before"),
    "put_freezes": (("daemon", "owner"), "log.put_batch", "freeze_before"),
}
"""Rates of a fault at certain effects alone: how the effect's name may begin, what is in it, and the fault."""

NO_RESENDING = frozenset(KINDS) - {"resent", "again"}
"""For effects that no client sends twice by itself: a database's transactions."""


def chance(*names: object) -> float:
    """Returns a number from 0 to 1 that depends on the names alone."""
    text = "/".join(map(str, names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


@dataclass(slots=True)
class Faults:
    """The faults of one run.

    Attributes:
        seed: the run's seed.
        rates: how likely each kind is at an effect.
        until: seconds after which nothing fails any more.
        left_out: names of faults that do not happen.
        happened: the faults that did: time and name.
        counts: how many effects of each name there were.
        outages: begin, end and service.
        felt: the outages that something has met.
        latest: when the last request arrives, or the last process goes on, that was held up.
    """

    hub: Hub
    seed: int
    rates: dict[str, float]
    until: float
    left_out: Collection[str] = ()
    happened: list[tuple[float, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    outages: list[tuple[float, float, str]] = field(default_factory=list)
    felt: set[str] = field(default_factory=set)
    latest: float = 0.0

    def named(self, name: str) -> str:
        """Returns the name with its number among the effects of that name."""
        self.counts[name] += 1
        return f"{name}#{self.counts[name]}"

    def chance(self, *names: object) -> float:
        return chance(self.seed, *names)

    def between(self, low: float, high: float, *names: object) -> float:
        return low + (high - low) * self.chance(*names)

    def of(self, name: str, allowed: Collection[str]) -> str | None:
        """Returns the fault of an effect, if it has one."""
        if self.hub.now >= self.until:
            return None
        dice = self.chance("fault", name)
        for kind in KINDS:
            rate = self.rates.get(kind, 0.0) if kind in allowed else 0.0
            if dice < rate:
                return kind if self.happens(f"{kind} {name}") else None
            dice -= rate
        for aimed, (begin, within, kind) in AIMED.items():
            if name.startswith(begin) and within in name and dice < self.rates.get(aimed, 0.0):
                return kind if self.happens(f"{kind} {name}") else None
        return None

    def happens(self, name: str) -> bool:
        """Notes a fault; returns False when it is left out."""
        if name in self.left_out:
            return False
        self.happened.append((self.hub.now, name))
        return True

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedules what was held up."""
        self.latest = max(self.latest, self.hub.now + seconds)
        self.hub.after(seconds, action)

    def away(self, service: str) -> bool:
        """Returns whether a service does not answer at all at present."""
        return self.over(service) > 0.0

    def over(self, service: str) -> float:
        """Returns when a service's present outage is over; 0 where there is none."""
        if not self.outages:
            return 0.0
        return max((end for begin, end, name in self.outages if name == service and self._lasts(begin, end, name)),
                   default=0.0)  # fmt: skip

    def _lasts(self, begin: float, end: float, name: str) -> bool:
        if not begin <= self.hub.now < end:
            return False
        told = f"outage {name} {begin:.3f}"
        if told in self.felt:
            return True
        if not self.happens(told):
            return False
        self.felt.add(told)
        return True


class Effects:
    """Makes a process's requests to one service.

    Args:
        service: its name, for outages and in effects' names.
        unanswered: makes the error of a request without an answer.
        allowed: the faults that the service's requests may have.
        pace: seconds that a request or a reply takes, at most, without a fault.
    """

    def __init__(
        self,
        faults: Faults,
        process: Process,
        service: str,
        unanswered: Callable[[str], Exception],
        allowed: Collection[str] = KINDS,
        pace: float = 0.02,
    ) -> None:
        self._faults = faults
        self._hub = faults.hub
        self._process = process
        self._service = service
        self._unanswered = unanswered
        self._allowed = allowed
        self._pace = pace

    def call(self, name: str, act: Callable[[], T]) -> T:
        """Makes one request; returns its answer. Blocks the calling strand for the time that it takes.

        Raises:
            Exception: what ``act`` raises, or the error of a request without an answer.
        """
        hub, faults = self._hub, self._faults
        strand = hub.strand
        if hub.closing or strand is None or self._process.dead:
            raise KilledError
        full = faults.named(f"{self._process.name} {self._service}.{name}")
        fault = faults.of(full, self._allowed)
        held = self._held(name)
        if not held and self._is_away(name):
            hub.pause(faults.between(0.05, 2.0, "away", full))
            raise self._unanswered(name)
        there, back = (self._pace * faults.chance(way, full) ** 2 for way in ("there", "back"))
        there += max(0.0, held - hub.now)
        if fault == "slow":
            there, back = (
                there + faults.between(0.0, 8.0, "slow there", full),
                back + faults.between(0.0, 8.0, "slow back", full),
            )
        if fault == "freeze_before":
            self._freeze(full)
        if fault == "unsent":
            hub.pause(there + faults.between(0.0, 3.0, "unsent", full))
            raise self._unanswered(name)
        if fault == "late":
            faults.later(there + faults.between(0.1, 20.0, "late", full), partial(_quietly, act))
            hub.pause(there + faults.between(0.0, 3.0, "unsent", full))
            raise self._unanswered(name)
        if fault == "kill_before":
            if faults.chance("arrives", full) < 0.6:
                faults.later(there + faults.between(0.0, 5.0, "arrives at", full), partial(_quietly, act))
            self._process.kill()
            hub.park()
        if fault == "resent":
            hub.after(there, partial(_quietly, act))
            there += faults.between(0.01, 3.0, "resent", full)
        return self._answered(strand, act, full, fault, there, back, name)

    def _answered(
        self, strand: Any, act: Callable[[], T], full: str, fault: str | None, there: float, back: float, name: str
    ) -> T:
        hub, faults = self._hub, self._faults
        box: list[tuple[bool, Any]] = []

        def effect() -> None:
            try:
                box.append((True, act()))
            except Exception as error:
                box.append((False, error))
            if fault == "again":
                faults.later(faults.between(0.1, 20.0, "again", full), partial(_quietly, act))
            if fault == "kill_after":
                self._process.kill()
            hub.after(back, lambda: hub.wake(strand), self._process)

        hub.after(there, effect)
        hub.park()
        if fault == "unanswered":
            hub.pause(faults.between(0.0, 3.0, "unanswered", full))
            raise self._unanswered(name)
        if fault == "freeze_after":
            self._freeze(full)
        succeeded, answer = box[0]
        if not succeeded:
            raise answer
        result: T = answer
        return result

    def _held(self, name: str) -> float:
        """Returns until when requests of that name are held on their way; 0 where they are not."""
        return self._faults.over(f"held {self._service} {name}@{self._process.host}") if self._faults.outages else 0.0

    def _is_away(self, name: str) -> bool:
        service, away = self._service, self._faults.away
        if not self._faults.outages:
            return False
        return away(service) or away(f"{service} {name}") or away(f"{service}@{self._process.host}")

    def _freeze(self, full: str) -> None:
        """Freezes the process; its strand goes on when the process does."""
        seconds = self._faults.between(0.5, 40.0, "freeze", full)
        self._process.freeze()
        self._faults.later(seconds, self._process.resume)
        self._hub.pause(0.0)


def _quietly(act: Callable[[], object]) -> None:
    """Does what nobody waits for; its refusal is nobody's."""
    try:
        act()
    except AssertionError:
        raise
    except Exception:
        return
