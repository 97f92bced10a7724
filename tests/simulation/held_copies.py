"""Copies of ranges that stand still before their first round trip, where nobody can end a session of theirs.

* *Left*: the load's driver is killed, and the next one begins anew at once. The copies go on when the next load has its
  steps: with the old snapshot, for the steps of the new load.
* *Late*: the driver has given one copy of a table that is loaded by itself up, and another task has copied the range.
  The late one goes on when that is done, while the table's load still is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kainite_spark.load.tasks import LoadTask
from simulation.aims_loads import LATE_TABLE
from simulation.load_source import LoadOracle
from simulation.loop import Hub, Process

_LOOK_S: Final = 0.02
_PATIENCE_S: Final = 30.0
"""Seconds after which copies go on in any case: what they wait for may not come."""


class HeldCopies:
    """Holds copies.

    Args:
        hub: of the run.
        oracle: what the target's ledger says; known when the run begins.
        kill_driver: kills the driver.
    """

    def __init__(self, hub: Hub, oracle: Callable[[], LoadOracle], kill_driver: Callable[[], None]) -> None:
        self._hub = hub
        self._oracle = oracle
        self._kill_driver = kill_driver
        self._to_leave = False
        self._to_delay = False
        self._left = False

    def leave_next(self) -> None:
        """Has the next load left whose copies begin."""
        self._to_leave = True

    def delay_next(self) -> None:
        """Has the next copy of the table held."""
        self._to_delay = True

    def is_left(self) -> bool:
        """Tells, once, whether a load was left: the one that follows begins anew."""
        left, self._left = self._left, False
        return left

    def begins(self, task: LoadTask, step: int, process: Process) -> None:
        """Holds a copy that begins, where it is to be held."""
        log, limit = task.ends.log_partition, self._hub.now + _PATIENCE_S
        if self._to_leave:
            if not self._left:
                self._left = True
                self._hub.after(0.1, self._leave)
            process.freeze()
            self._resume(process, limit, lambda: self._oracle().has_steps_of_a_load_after(log, task.generation))
        elif self._to_delay and log.endswith(f".{LATE_TABLE}"):
            self._to_delay = False
            process.freeze()
            self._resume(process, limit, lambda: self._oracle().has_done(log, step))

    def _leave(self) -> None:
        self._to_leave = False
        self._kill_driver()

    def _resume(self, process: Process, limit: float, may_go_on: Callable[[], bool]) -> None:
        if self._hub.now > limit or may_go_on():
            process.resume()
        else:
            self._hub.after(_LOOK_S, lambda: self._resume(process, limit, may_go_on))
