"""A target that is set back to an earlier state of its own, as by a restore, or a standby that lacks the last commits.

The apply job must say so (TargetWentBackError) unless nothing is missing that the log has as committed. What tasks of
the micro-batch that was under way write after the moment is not judged until the target lets a later micro-batch in:
then it must hold what the units in it add up to, as ever. So the run ends well in one of three ways:

* everything is applied in the end: what the target lost was still unresolved in the log;
* apply jobs go on refusing the target, and a person has not come yet. An apply job without units to apply does not look
  at the target, so all of them are started again when the faults are over;
* a person does what docs/operations.md says: copies all rows from the source, discards what is unresolved, and starts
  the apply job once with ``--adopt-target``. From then on nothing may be applied again.

Without a set-back nobody may say that the target went back.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kainite.base.errors import TargetWentBackError
from kainite.log.format.entry import UnitStatus
from kainite.log.state.loading import load_state
from simulation.schema import JOURNAL

if TYPE_CHECKING:
    from simulation.world import World

LOOK_S = 2.0
"""Seconds between two looks of the person."""

LATELY_S = 40.0
"""An apply job that refuses the target has said so in so many seconds: it is started again and again."""


@dataclass
class WentBack:
    """Sets the target back, hears who refuses it, and lets a person put it right.

    Attributes:
        world: whose target it is.
        adopts: whether the next apply job is to take the target as it is.
    """

    world: World
    adopts: bool = False
    _saved: sqlite3.Connection | None = None
    _before: tuple[int, int] | None = None
    _refused: float | None = None
    _adopted: float | None = None

    def begin(self) -> None:
        """Schedules the set-back, if there is one."""
        planned = self.world.plan.more.set_back
        if planned is not None:
            self.world.hub.after(planned.at - planned.age, self._save)
            self.world.hub.after(planned.at, self._set_back)

    def hides(self) -> bool:
        """Returns whether what the target holds now is not to be judged: only tasks of before may have written."""
        return self._before is not None and self.world.gate.latest <= self._before

    def heard(self, error: BaseException | None) -> None:
        """Hears why an apply job ended."""
        if not isinstance(error, TargetWentBackError):
            return
        if self._before is None or (self._adopted is not None and self.world.hub.now > self._adopted + LATELY_S):
            self.world.hosts.broken(f"the target is said to have gone back, and has not: {error}")
        self._refused = self.world.hub.now

    def is_refused(self) -> bool:
        """Returns whether apply jobs go on refusing the target, so that a person has to come."""
        lately = self._refused is not None and self.world.hub.now - self._refused < LATELY_S
        return lately and self.hides() and self.world.producer.done

    def settles(self) -> bool:
        """Returns whether the run may end with a target that is refused."""
        planned = self.world.plan.more.set_back
        return planned is not None and not planned.adopted and self.is_refused()

    def take_adoption(self) -> bool:
        """Returns whether the apply job that starts now has ``--adopt-target``: one of them has."""
        adopts, self.adopts = self.adopts, False
        return adopts

    def _save(self) -> None:
        self._saved = sqlite3.connect(":memory:", check_same_thread=False)
        with sqlite3.connect(self.world.path) as target:
            target.backup(self._saved)
        target.close()

    def _set_back(self) -> None:
        world = self.world
        assert self._saved is not None, "saved before"
        if not world.faults.happens("target set back"):
            return
        target = sqlite3.connect(world.path)
        self._saved.backup(target)
        target.close()
        self._before, world.gate.latest = world.gate.latest, (0, 0)
        world.oracle.begin_anew()
        calm = max(LOOK_S, world.plan.until - world.hub.now)
        world.hub.after(calm, self._start_again)
        planned = world.plan.more.set_back
        if planned is not None and planned.adopted:
            world.hub.after(calm, self._look)

    def _start_again(self) -> None:
        """Has the apply jobs end, which start again: at its start each looks at the target."""
        if not self.world.producer.done:
            self.world.hub.after(LOOK_S, self._start_again)
            return
        self.world.restart_drivers()

    def _look(self) -> None:
        """Has a person put the target right, once it is refused, the source is done and nothing is collected."""
        world = self.world
        state = load_state(world.store, "0")
        if self.is_refused() and not state.open:
            left = [unit.uow for unit in state.units.values() if unit.status is not UnitStatus.DISCARDING]
            if not left:
                self._copy()
                return
            asked = {request["uow"] for _, request in world.store.read_requests("0")}
            for uow in left:
                if uow not in asked:
                    world.store.put_request("0", {"action": "discard", "uow": uow, "by": "a person"})
        world.hub.after(LOOK_S, self._look)

    def _copy(self) -> None:
        """Copies all rows from the source."""
        world = self.world
        target = sqlite3.connect(world.path)
        for table in world.source.tables.values():
            target.execute(f"DELETE FROM {table.name}")
            for row in world.source.state[table.name].values():
                marks = ", ".join("?" * len(row))
                target.execute(f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({marks})", [*row.values()])
        target.execute(f"DELETE FROM {JOURNAL}")
        target.executemany(f"INSERT INTO {JOURNAL} VALUES (?)", [(one.name,) for one in world.source.history])
        target.commit()
        target.close()
        world.oracle.begin_anew()
        self.adopts, self._adopted = True, world.hub.now
