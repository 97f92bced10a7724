"""A log whose owner has neither queue nor tasks, for tests of what the owner does on a timer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kainite.base.clock import epoch_ms
from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.reported_shards import ReportedShards
from kainite.log.collecting.waiting import Waiting
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, Outcome, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.owner.looking import Looking
from kainite.owner.mount import mount, new_token
from kainite.owner.refit import Refitting
from kainite.owner.upkeep import LogUpkeep
from kainite.settings import LogSettings, UowSettings
from support.log_builders import fragment
from support.outcomes_log import OutcomesLog

SETTINGS = LogSettings("t", "a", enabled=True, snapshot_entries=10, poll=0.01)
RULES = UowSettings()
P = SETTINGS.partition


class OwnedLog:
    """An owner without queue and tasks: what it writes is durable when it returns."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self.state = FoldedLog()
        self.refitting: Refitting | None = None
        self.mounted = mount(store, P, SETTINGS.owner, 1000.0)
        self.looking = Looking(lambda: 0.0, poll=0.0)
        self.given_up = ""
        self.now = 0.0
        self.reported = ReportedShards(lambda: self.now, lambda: self.state.awaited)
        self.upkeep = LogUpkeep(
            store, SETTINGS, RULES, self.mounted, None, Waiting(RULES.timeout, lambda: 0.0), self.reported, self.looking
        )

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        first = self.state.next_id
        if entries := decide(self.state):
            batch = Batch(first, self.mounted.generation, 0, tuple(entries))
            assert self.store.put_batch(P, batch, new_token()) is None

    async def units(self, *names: str) -> None:
        """Collects units of one delta each."""
        at = Position(self.state.next_id + 1)
        parts = [fragment(name, [number], count=1) for number, name in enumerate(names)]
        await self.write(lambda state: collect(state, RULES, "s0", at, parts, 0))

    async def failed(self, *names: str, cause: str = "bad") -> None:
        """Collects units, which the apply job then reports as failed."""
        await self.units(*names)
        tids = [unit.tid for unit in self.state.units.values() if unit.uow in names]
        OutcomesLog(self.store).report(*(Outcome(tid, UnitStatus.FAILED, 0, cause) for tid in tids))
        await self.run()

    async def ask(self, **request: str) -> Mapping[str, str] | None:
        """Asks for something, and returns the answer; None while there is none."""
        asked = self.store.put_request(P, {"by": "me", "why": "a test", "at": str(epoch_ms()), **request})
        await self.run()
        return self.store.take_answer(P, asked)

    def give_up(self, why: str) -> None:
        self.given_up = why

    def statuses(self) -> dict[str, UnitStatus]:
        return {unit.uow: unit.status for unit in self.state.units.values()}

    async def run(self) -> None:
        await self.upkeep.run_once(self)
