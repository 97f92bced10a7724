"""The contract of a target that can wait with its commit, for ``targetCommit = together``.

A transaction that has taken everything calls somebody before it commits: whoever applies the same units in another
target. If that one refuses, the error passes through here, and nothing is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from kainite_spark.targets.contract import Target, TargetSession

BeforeCommit: TypeAlias = Callable[[], None]


class HoldingSession(TargetSession, Protocol):
    """A connection whose transactions can wait with their commit."""

    def before_commit(self, act: BeforeCommit) -> AbstractContextManager[None]:
        """Lets each transaction of units call ``act`` last, while entered; if that raises, the transaction rolls back.

        What a target would refuse at its commit alone, it refuses before the call where it can be asked to.
        """


class HoldingTarget(Target, Protocol):
    """A target whose sessions can wait."""

    def connect(self) -> HoldingSession: ...
