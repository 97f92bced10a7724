"""The target behind faults: a real SQLite database, one request for each transaction.

SQLite has one writer at a time, so a transaction is one instant. A request that arrives late does so on a connection
of its own, as one that a database goes on with when its client is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kainite.base.errors import TargetUnavailableError
from simulation.faults import NO_RESENDING, Effects, Faults
from simulation.loop import Process

Seen = Callable[[str], None]
"""Is told after each transaction, with the name of the process and of what it did."""


class SimTarget:
    """The target as one process has it; implements :class:`kainite_spark.targets.contract.Target`."""

    def __init__(self, target: Any, faults: Faults, process: Process, seen: Seen) -> None:
        self._target = target
        self._process = process
        self._seen = seen
        self._effects = Effects(faults, process, "target", _unanswered, NO_RESENDING)

    def connect(self) -> SimSession:
        return SimSession(self._target, self._effects, self._process, self._seen)

    def prepare(self, catalogue: Any) -> None:
        self._target.prepare(catalogue)

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def call(*args: Any, **more: Any) -> Any:
            def act() -> Any:
                try:
                    return method(*args, **more)
                finally:
                    self._seen(f"{self._process.name} {name}")

            return self._effects.call(name, act)

        return call


class SimSession:
    """A connection; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, target: Any, effects: Effects, process: Process, seen: Seen) -> None:
        self._target = target
        self._effects = effects
        self._process = process
        self._seen = seen

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **more: Any) -> Any:
            def act() -> Any:
                session = self._target.connect()
                try:
                    return getattr(session, name)(*args, **more)
                finally:
                    session.close()
                    self._seen(f"{self._process.name} {name}")

            return self._effects.call(name, act)

        return call


def _unanswered(name: str) -> Exception:
    return TargetUnavailableError(f"target: {name} was not answered")
