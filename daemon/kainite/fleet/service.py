"""Runs one worker of the fleet: looks at the table again and again, and carries out the member's decisions.

Before each step the worker looks whether its lease still holds. When it does not (the process stood still, or the
table was away) it kills its programs before anything else. Its guards do the same by themselves while it stands
still.

Stop: the worker says that it is closing, gives the lead back, stops its programs, gives its duties back, and says
that it has ended. That takes the longest grace of its duties; what is left then is killed. A crash at any point
leaves what the table says; others find the worker silent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from kainite.base.clock import boot_seconds
from kainite.base.errors import FleetUnavailableError, StoppedError
from kainite.base.logs import event
from kainite.base.outage import wait_out
from kainite.base.retry import Backoff
from kainite.base.time_limit import time_limit
from kainite.base.waiting import wait_until_set
from kainite.fleet import fleet_metrics
from kainite.fleet.programs.programs import DutyPrograms
from kainite.fleet.steps.member import FleetMember
from kainite.fleet.steps.observer import FleetLook
from kainite.fleet.steps.plan import (
    ForgetProgram,
    KillAll,
    KillProgram,
    Notice,
    Order,
    PlanStep,
    ShutDown,
    StartProgram,
    StopProgram,
)
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import FleetCommit, FleetStore
from kainite.observe.meter import SILENT, Meter

logger = logging.getLogger(__name__)

SOON_S = 0.05
"""Seconds until the next look after one that has changed something: others' changes may follow from it."""
AWAY_BACKOFF = Backoff((0.2, 0.5, 1.0), jitter=0.5)
"""Pauses while the table does not answer; never longer than the pause between two looks."""
CLOSING_MARGIN_S = 5.0


class FleetService:
    """Runs one worker of the fleet.

    Args:
        store: the coordination table.
        member: decides.
        programs: the programs of this worker's duties; their news end a pause.
        timing: the times of the fleet.
        news: set when a program may have got further.
        shut_down: ends the daemon, on an operator's message.
        meter: takes the fleet's figures, at each look.
    """

    def __init__(
        self,
        store: FleetStore,
        member: FleetMember,
        programs: DutyPrograms,
        timing: Timing,
        news: asyncio.Event,
        shut_down: Callable[[], object],
        meter: Meter = SILENT,
    ) -> None:
        self._store = store
        self._member = member
        self._programs = programs
        self._timing = timing
        self._news = news
        self._shut_down = shut_down
        self._meter = meter
        self._failures = 0
        self._said: set[str] = set()

    async def run(self, stop: asyncio.Event, grace: float) -> None:
        """Works until ``stop`` is set, then leaves the fleet.

        Args:
            stop: set to end.
            grace: seconds for leaving, more where a program's own grace is longer; what still runs then is killed.

        Raises:
            FleetError: the table is missing, or refuses.
        """
        try:
            with suppress(StoppedError):
                await wait_out(self._store.create, stop, "the fleet's table")
            await self._work(stop)
            self._member.closing = True
            async with time_limit(max(grace, self._programs.longest_grace()) + CLOSING_MARGIN_S):
                while not self._member.left:
                    await self._pause(await self._look())
        except TimeoutError:
            event(logger, logging.WARNING, "fleet not left in time: others will find this worker silent")
        finally:
            await self._programs.kill_all("the daemon ends")

    async def _work(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self._news.set())
        try:
            while not stop.is_set():
                await self._pause(await self._look())
        finally:
            stopping.cancel()

    async def _look(self) -> bool:
        """Takes a look and carries out its decisions; returns whether anything has changed."""
        self._news.clear()
        await self._fence()
        began, changed = boot_seconds(), False
        try:
            picture = await asyncio.to_thread(self._store.read)
            fleet_metrics.tell(self._meter, picture)
            look = FleetLook(picture, began, boot_seconds())
            for step in self._member.look(look, self._programs.states()):
                if await self._fence() or not await self._carry_out(step):
                    changed = True
                    break
                changed = changed or not step.idle
        except FleetUnavailableError as error:
            self._failures += 1
            event(logger, logging.WARNING, "fleet table away, trying again", failures=self._failures, error=error)
            fleet_metrics.tell_away(self._meter)
            return False
        self._failures = 0
        return changed

    async def _fence(self) -> bool:
        """Kills all programs when the worker's lease is over; returns whether the lease was over."""
        if not self._programs or boot_seconds() < self._member.lease_end:
            return False
        event(logger, logging.ERROR, "duties stopped: this worker gave no sign of life for a whole lease")
        await self._programs.kill_all("the lease is over")
        return True

    async def _carry_out(self, step: PlanStep) -> bool:
        for order in step.before:
            await self._obey(order)
        if step.commit is not None and not await self._commit(step.commit, pings=step.pings):
            return False
        for order in step.after:
            await self._obey(order)
        return True

    async def _commit(self, commit: FleetCommit, *, pings: bool) -> bool:
        began = boot_seconds()
        done = await asyncio.to_thread(self._store.commit, commit)
        if done and pings:
            self._member.pinged(began)
            self._programs.extend(self._member.lease_end)
        if done:
            for line in commit.events:
                event(logger, logging.INFO, "fleet", of=line.subject, about=line.name, status=line.status,
                      worker=line.worker or None, by=line.who, why=line.why)  # fmt: skip
        return done

    async def _obey(self, order: Order) -> None:
        programs = self._programs
        match order:
            case KillAll():
                await programs.kill_all("another worker may have the duty")
            case StartProgram(duty):
                if boot_seconds() < self._member.lease_end:
                    programs.start(duty, self._member.lease_end)
            case StopProgram(name):
                programs.stop(name)
            case KillProgram(name, why, failed):
                programs.kill(name, why, failed=failed)
            case ForgetProgram(name):
                await programs.forget(name)
            case ShutDown():
                event(logger, logging.WARNING, "an operator shuts this worker down")
                self._shut_down()
            case Notice(what, about) if f"{what} {about}" not in self._said:
                self._said.add(f"{what} {about}")
                event(logger, logging.ERROR, what, about=about)

    async def _pause(self, changed: bool) -> None:
        await wait_until_set(self._news, self._seconds(changed))

    def _seconds(self, changed: bool) -> float:
        if changed:
            return SOON_S
        if self._failures:
            return min(AWAY_BACKOFF.after(self._failures), self._timing.ping)
        due = self._member.next_due()
        waits = [self._timing.ping, self._programs.next_ready(), None if due is None else due - boot_seconds()]
        return max(SOON_S, min(wait for wait in waits if wait is not None))
