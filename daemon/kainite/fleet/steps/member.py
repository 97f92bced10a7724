"""One worker of the fleet: what it does at each look at the table. Without I/O.

A look goes in this order, and each part needs the one before it:

1. *Fencing itself.* A worker whose last ping is too old (it stood still, or the table was away) kills all of its
   programs before it does anything else: others may have its duties.
2. *Its record* (:mod:`~kainite.fleet.steps.own_record`): it enters the fleet, pings, obeys messages.
3. *The lead.* A worker that may lead and finds no live leader claims the lead, with the next generation; one
   conditional write decides. The leader renews its lease, which counts as its ping, and leads
   (:mod:`~kainite.fleet.steps.leading`). A worker that is disabled or ends gives the lead back.
4. *Its duties* (:mod:`~kainite.fleet.steps.own_duties`).

What a crash leaves: a record and a lease that stand still until others find them silent; programs that their guards
kill (:mod:`~kainite.fleet.programs.guard`). Nothing that this worker remembers is needed by another.

Invariants, which the stateful suite checks on any number of workers, with any faults:

* a program is started only for a duty whose record names this process, and within the lease that follows from the
  last ping; so no two programs of one duty run within leases that both hold;
* and only if no write is under way by which this process gives the duty back: one that had no answer may still come;
* no write of this module's changes whether a duty is wanted.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

from kainite.base.lease import NEVER, Tenure
from kainite.fleet.model.records import Duty, HistoryLine, Lead, Picture, Subject, Worker
from kainite.fleet.model.states import LEADERSHIP_TRANSITIONS, IllegalTransitionError, LeadershipStatus, WorkerStatus
from kainite.fleet.steps.expecting import Expecting
from kainite.fleet.steps.leading import Leading
from kainite.fleet.steps.observer import FleetLook, Observer
from kainite.fleet.steps.own_duties import OwnDuties, Programs
from kainite.fleet.steps.own_record import ProcessGone, entering, leaving, obeyed, ping
from kainite.fleet.steps.plan import KillAll, PlanStep
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import FleetCommit, PutRecord


class FleetMember:
    """Decides for one worker. To be used by one thread at a time.

    Args:
        me: this worker's record as it is at its start; each entry into the fleet gives it a new incarnation.
        timing: the fleet's timing.
        declared: the duties that the worker's settings declare.
        is_gone: tells whether another process under this worker's name has ended.
        is_dormant: tells whether it is in its dormant hours.
        new_incarnation: gives a name that no other process and no other entry has.

    Attributes:
        leadership: its own, as far as it knows.
        closing: it ends: set by the shell.
    """

    def __init__(
        self,
        me: Worker,
        timing: Timing,
        declared: tuple[Duty, ...] = (),
        is_gone: ProcessGone = lambda _: False,
        is_dormant: Callable[[], bool] = lambda: False,
        new_incarnation: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self.leadership = LeadershipStatus.NORMAL
        self.closing = False
        self.left = False
        """It has written that it has ended; nothing follows."""
        self._fresh = me
        self._timing = timing
        self._is_gone = is_gone
        self._is_dormant = is_dormant
        self._new_incarnation = new_incarnation
        self._observer = Observer(timing.timeout)
        self._own = OwnDuties()
        self._leading = Leading(timing, declared)
        self._tenure = Tenure(timing.lease)
        self._entered = NEVER
        self._expecting = Expecting(timing)

    @property
    def lease_end(self) -> float:
        """Returns until when programs may run, by the boot clock."""
        return self._tenure.end

    def pinged(self, began: float) -> None:
        """Notes that a sign of life was written, by a write that began at ``began``."""
        self._tenure = self._tenure.renewed(began)

    def next_due(self) -> float | None:
        """Returns when the worker has to look before its turn, by the boot clock; None when it need not."""
        return min(filter(None, (self._own.next_due(), self._expecting.next_look())), default=None)

    def look(self, look: FleetLook, programs: Programs) -> Iterator[PlanStep]:
        """Yields the steps of the plan; the shell carries out a step before it asks for the next one.

        Args:
            look: a read of the table.
            programs: this worker's programs, by their duty.
        """
        self._observer.see(look)
        self._expecting.see(self._known(look.picture), look, self._observer, self._entered)
        if programs and look.began >= self.lease_end:
            yield PlanStep(before=(KillAll(),))
            programs = {}
        picture = look.picture
        fresh = self._new_incarnation()
        enter = entering(self._fresh, fresh, picture, self._observer, self._timing, self._is_gone)
        if enter is not None:
            # Before the write: it may succeed without an answer.
            self._fresh = replace(self._fresh, incarnation=fresh)
            self._become(LeadershipStatus.NORMAL)
            self._entered = look.began
            if not self.closing:
                yield enter
                return
            yield PlanStep(before=(KillAll(),))
            self.left = True
            return
        before = picture.workers[self._fresh.name]
        yield from self._as_member(before, look, programs)

    def _known(self, picture: Picture) -> Worker:
        """Returns this worker's record: the table's, or that of its start where another process's stands there."""
        stands = picture.workers.get(self._fresh.name)
        return stands if stands is not None and stands.incarnation == self._fresh.incarnation else self._fresh

    def _as_member(self, before: Worker, look: FleetLook, programs: Programs) -> Iterator[PlanStep]:
        picture = look.picture
        heard = obeyed(before, picture, self._observer, self._timing)
        if heard.rebalance:
            self._leading.ask_for_rebalancing()
        lead = picture.lead or Lead()
        renews = lead.is_of(before) and not self.closing
        due = not renews and look.began - self._tenure.since >= self._timing.worker_ping - self._timing.ping / 2
        alive = ping(before, heard, dormant=self._is_dormant(), closing=self.closing, due=due)
        me = before
        if alive is not None:
            yield alive
            assert alive.commit is not None
            written = alive.commit.changes[0].record
            assert isinstance(written, Worker)
            me = written
        yield from self._lead(me, lead, look)
        yield from self._own.steps(me, picture, programs, look.began)
        if self.closing and not programs and not picture.duties_of(me) and alive is None:
            yield leaving(me)
            self.left = True

    def _lead(self, me: Worker, lead: Lead, look: FleetLook) -> Iterator[PlanStep]:
        may_lead = me.status is WorkerStatus.ALIVE
        if lead.is_of(me):
            if not may_lead:
                self._become(LeadershipStatus.NORMAL)
                event = HistoryLine(Subject.LEADER, "leader", "released", me.name, f"the worker is {me.status}")
                yield PlanStep(
                    commit=FleetCommit((PutRecord(replace(lead, worker="", incarnation="")),), events=(event,))
                )
                return
            self._become(LeadershipStatus.LEADER)
            if look.began - self._tenure.since >= self._timing.ping / 2:
                yield PlanStep(commit=FleetCommit((PutRecord(lead),)), pings=True, idle=True)
            settled = look.began - self._entered >= self._timing.settle
            yield from self._leading.steps(me, lead, look.picture, self._observer, look.began, settled=settled)
        elif may_lead and self._is_vacant(lead, look.picture):
            self._become(LeadershipStatus.CANDIDATE)
            claim = Lead(me.name, me.incarnation, lead.generation + 1, lead.version)
            why = f"generation {claim.generation}" + (f", after {lead.worker}" if lead.worker else "")
            event = HistoryLine(Subject.LEADER, "leader", LeadershipStatus.LEADER, me.name, why, me.name)
            yield PlanStep(commit=FleetCommit((PutRecord(claim),), events=(event,)), pings=True)
            self._become(LeadershipStatus.LEADER)
        else:
            self._become(LeadershipStatus.NORMAL)

    def _is_vacant(self, lead: Lead, picture: Picture) -> bool:
        leader = picture.workers.get(lead.worker)
        if leader is None or not lead.is_of(leader) or not leader.status.pings:
            return True
        return self._observer.silence_of_leader() >= self._timing.timeout

    def _become(self, status: LeadershipStatus) -> None:
        if status is self.leadership:
            return
        if (self.leadership, status) not in LEADERSHIP_TRANSITIONS:
            raise IllegalTransitionError(f"leadership may not become {status} that is {self.leadership}")
        self.leadership = status
