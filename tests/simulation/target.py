"""The target behind faults: a database file that is real, calls that are slow, lost or late, and rows that are locked.

The file is opened by Kainite's SQLite target. What PostgreSQL would refuse in passing is refused here before the
database is asked: a unit whose row somebody has locked, a group that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from kainite.base.errors import TargetBusyError, TargetInterruptedError, TargetUnavailableError
from kainite_spark.targets.hooks import FoundHooks
from kainite_spark.targets.preparing import name_in
from kainite_spark.targets.sqlite import target as sqlite_target
from kainite_spark.targets.statements import planner
from simulation.faults import NO_RESENDING, Effects, Faults
from simulation.loop import Process

planner.FOLDED_LAYERS = 1  # a simulation's groups are too small to have many layers

# The trigger that refuses units changes no row. As a barrier, in each unit, it would leave nothing to fold.
vars(sqlite_target)["found_triggers"] = lambda *_: FoundHooks()

Seen = Callable[[str], None]
"""Is told after each transaction, with the name of the process and of what it did."""

LOCK_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Lock:
    """Somebody else's lock of a row that a unit writes."""

    begin: float
    end: float
    unit: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Locked rows, and the most units of a transaction; 0 for no limit."""

    locks: Collection[Lock] = ()
    most_units: int = 0

    def trouble(self, units: Collection[Any], now: float) -> str | None:
        """Returns why the target is busy with these units; None when it is not."""
        names = {unit.uow for unit in units}
        if any(lock.unit in names and lock.begin <= now < lock.end for lock in self.locks):
            return "canceling statement due to lock timeout"
        if self.most_units and len(units) > max(1, self.most_units):
            return "canceling statement due to statement timeout"
        return None


@dataclass(slots=True)
class Gate:
    """The latest micro-batch that the target has let in; no earlier one may write any more.

    Attributes:
        broken: is told what is wrong.
        latest: generation and number of the micro-batch.
    """

    broken: Callable[[str], None]
    latest: tuple[int, int] = (0, 0)

    def let_in(self, fence: Any) -> None:
        self.latest = max(self.latest, (fence.generation, fence.micro_batch))

    def finished(self, who: str, gid: str, *, committed: bool, found: bool) -> None:
        """Judges a prepared transaction that was finished."""
        name = name_in(gid)
        if committed and found and name is not None and (name.generation, name.micro_batch) < self.latest:
            self.broken(f"{who} committed {gid}, and the target has let {self.latest} in")

    def wrote(self, who: str, fence: Any) -> None:
        """Judges a transaction that was committed under a fence."""
        if (fence.generation, fence.micro_batch) < self.latest:
            self.broken(f"{who} wrote under {fence}, and the target has let {self.latest} in")


class SimTarget:
    """The target as one process has it; implements :class:`kainite_spark.targets.contract.Target`."""

    def __init__(
        self,
        target: Any,
        faults: Faults,
        process: Process,
        seen: Seen,
        limits: Limits,
        gate: Gate,
        service: str = "target",
    ) -> None:
        self.target = target
        self._gate = gate
        self._process = process
        self._seen = seen
        self._limits = limits
        self._effects = Effects(faults, process, service, _unanswered, NO_RESENDING)

    def connect(self) -> SimSession:
        return SimSession(self.target, self._effects, self._process, self._seen, self._limits, self._gate)

    def prepare(self, log_partition: str, catalogue: Any) -> None:
        self.target.prepare(log_partition, catalogue)

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)

        def call(*args: Any, **more: Any) -> Any:
            def act() -> Any:
                try:
                    answer = method(*args, **more)
                finally:
                    self._seen(f"{self._process.name} {name}")
                if name in ("begin_micro_batch", "close_micro_batch"):
                    self._gate.let_in(args[0])
                if name == "finish":
                    self._gate.finished(self._process.name, *args, **more, found=answer)
                return answer

            return self._effects.call(name, act)

        return call


class SimSession:
    """A connection; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, target: Any, effects: Effects, process: Process, seen: Seen, limits: Limits, gate: Gate) -> None:
        self._target = target
        self._gate = gate
        self._effects = effects
        self._process = process
        self._seen = seen
        self._limits = limits
        self._session: Any = None

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def apply(self, fence: Any, units: Any, *, folded: bool = False) -> None:
        self._busy(units)
        self._call("apply", fence, units, folded=folded)

    def apply_in_source_order(self, fence: Any, unit: Any) -> None:
        self._busy((unit,))
        self._call("apply_in_source_order", fence, unit)

    def prepare(self, fence: Any, units: Any, gid: str, *, folded: bool = False) -> None:
        self._busy(units)
        self._call("prepare", fence, units, gid, folded=folded)

    def prepare_in_source_order(self, fence: Any, unit: Any, gid: str) -> None:
        self._busy((unit,))
        self._call("prepare_in_source_order", fence, unit, gid)

    def prepared(self, prefix: str) -> Any:
        return self._call("prepared", prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        found: bool = self._call("finish", gid, committed=committed)
        return found

    def applied(self, log_partition: str, tids: Any) -> set[int]:
        found: set[int] = self._call("applied", log_partition, tids)
        return found

    def _busy(self, units: Any) -> None:
        hub = self._process.hub
        if self._limits.trouble(units, hub.now) is not None:
            hub.pause(LOCK_TIMEOUT_S)  # a lock that ends meanwhile lets the statement go on
            if (trouble := self._limits.trouble(units, hub.now)) is not None:
                raise TargetBusyError(trouble)

    def _call(self, name: str, *args: Any, **more: Any) -> Any:
        def act() -> Any:
            if self._session is None:
                self._session = self._target.connect()
            try:
                answer = getattr(self._session, name)(*args, **more)
            finally:
                self._seen(f"{self._process.name} {name}")
            if name.startswith("apply"):
                self._gate.wrote(self._process.name, args[0])
            if name == "finish":
                self._gate.finished(self._process.name, *args, **more, found=answer)
            return answer

        return self._effects.call(name, act)


def _unanswered(name: str) -> Exception:
    text = f"target: {name} was not answered"
    about_units = name.startswith(("apply", "prepare")) and name not in ("applied", "prepared")
    return TargetInterruptedError(text) if about_units else TargetUnavailableError(text)
