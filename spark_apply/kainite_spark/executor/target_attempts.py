"""Commits units in one target transaction, and tries that again until the target answers.

If the connection broke during a commit, the target is asked which units it has acknowledged before the transaction is
tried again. A crash of the process leaves the units of committed transactions in the target, with their
acknowledgements; the next call with the same units finds them there, and applies the others.

A transaction whose connection is lost in each try, while the target answers a question, counts as busy: the units
themselves may be what breaks the connection. From then on each transaction has fewer tries.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kainite.base.clock import epoch_ms
from kainite.base.errors import TargetBusyError, TargetInterruptedError, TargetRejectedError, TargetUnavailableError
from kainite.base.logs import event
from kainite.base.retry import only, retry
from kainite_spark.executor.apply_options import Retry
from kainite_spark.targets.contract import TargetSession, Unit
from kainite_spark.targets.fence import Fence

_LOG = logging.getLogger(__name__)

Trouble: TypeAlias = TargetRejectedError | TargetBusyError
"""Why the target did not take some units."""

_SUSPECT_TRIES = 2
"""The number of tries for a part of a group that has interrupted the target in all its tries."""


class TargetAttempts:
    """The target transactions of one list of units.

    Args:
        session: the target.
        fence: the apply job and micro-batch that write.
        options: how often an unavailable target is tried.
        sleep: waits the given number of seconds between tries.

    Attributes:
        committed: the units that the target has acknowledged, each with the time at which this process learned of it,
            in milliseconds since the epoch.
    """

    def __init__(self, session: TargetSession, fence: Fence, options: Retry, sleep: Callable[[float], None]) -> None:
        self._session = session
        self._fence = fence
        self._options = options
        self._sleep = sleep
        self._suspect = False  # whether some units have interrupted a target that answers
        self.committed: dict[int, int] = {}

    def acknowledge(self, units: Sequence[Unit]) -> None:
        """Notes which units the target has acknowledged already.

        Raises:
            TargetUnavailableError: the target was unavailable in the last of the tries.
        """
        self._patiently(lambda _: self._ask(units))

    def commit(self, units: Sequence[Unit], act: Callable[[Sequence[Unit]], None]) -> Trouble | None:
        """Commits units by ``act``; returns the error if the target refused them, or was busy.

        Raises:
            TargetFencedError: a newer apply job or micro-batch owns the target.
            TargetUnavailableError: the target was unavailable in the last of the tries.
        """
        fault = next((unit.fault for unit in units if unit.fault is not None), None)
        if fault is not None:
            return TargetRejectedError(fault)

        def once(attempt: int) -> None:
            if attempt:  # The try before may have committed although its answer was lost.
                self._ask(units)
            rest = [unit for unit in units if unit.tid not in self.committed]
            if rest:
                act(rest)

        try:
            self._patiently(once)
        except (TargetRejectedError, TargetBusyError) as trouble:
            return trouble
        except TargetInterruptedError as interruption:
            if not self._answers(units):
                raise
            if any(unit.tid not in self.committed for unit in units):
                self._suspect = True
                return TargetBusyError(str(interruption))
        self._note(units)
        return None

    def _answers(self, units: Sequence[Unit]) -> bool:
        """Returns whether the target tells which units it has, although it was interrupted each time by these units."""
        try:
            self._ask(units)
        except TargetUnavailableError:
            return False
        return True

    def _ask(self, units: Sequence[Unit]) -> None:
        applied = self._session.applied(self._fence.log_partition, [unit.tid for unit in units])
        self._note([unit for unit in units if unit.tid in applied])

    def _note(self, units: Sequence[Unit]) -> None:
        now = epoch_ms()
        self.committed.update((unit.tid, now) for unit in units)

    def _patiently(self, act: Callable[[int], None]) -> None:
        """Calls ``act`` with the number of the try, from 0, until the target is available."""
        attempts = itertools.count()

        def failed(error: Exception, failures: int, pause: float) -> None:
            # The target may well answer: too many connections, or units that another task has acknowledged meanwhile.
            event(_LOG, logging.WARNING, "target transaction to be tried again", attempt=failures, cause=error)

        retry(
            lambda: act(next(attempts)),
            self._options.backoff,
            wait=self._sleep,
            retryable=only(TargetUnavailableError),
            tries=min(self._options.tries, _SUSPECT_TRIES) if self._suspect else self._options.tries,
            failed=failed,
        )
