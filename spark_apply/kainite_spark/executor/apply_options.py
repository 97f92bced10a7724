"""The options for applying a list of units: groups, failure policy, retries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from kainite.base.retry import Backoff
from kainite_spark.plan.micro_batch import MicroBatch


@dataclass(frozen=True, slots=True)
class Retry:
    """The retries of an unavailable target.

    Attributes:
        tries: how many attempts are made in all.
        first: the pause after the first failure, in seconds; each further pause is twice as long.
        limit: the longest pause, in seconds.
    """

    tries: int = 6
    first: float = 0.1
    limit: float = 5.0

    @property
    def backoff(self) -> Backoff:
        """Returns the pauses between the tries."""
        return Backoff.doubling(self.first, self.limit)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The options for applying a list of units.

    Attributes:
        stops: whether nothing is tried after the first failure; otherwise, later units that conflict with a failed one
            are held back.
        group_units: at most so many units share a target transaction.
        group_bytes: at most so many bytes of deltas share a target transaction; a larger unit has one of its own.
        unit_bytes: a unit with more bytes of deltas fails.
        busy_limit: seconds of failed attempts at busy groups; after these, no busy group is cut in two any more.
        retry: how often an unavailable target is tried.
        fold: whether changes of one row in a group may be made as one.
        in_order: whether no unit behind a busy or refused one is tried, so that units commit in log order.
        only: of these units the deltas of these tables alone are applied; by transaction id.
    """

    stops: bool = False
    group_units: int = 500
    group_bytes: int = 16 * 2**20
    busy_limit: float = 10.0
    retry: Retry = Retry()
    in_order: bool = False
    fold: bool = True
    unit_bytes: int = 256 * 2**20
    only: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def suited(self, batch: MicroBatch) -> Self:
        """Returns the options for a micro-batch: its units were busy alone before, or are committed in log order."""
        return replace(
            self, group_units=1 if batch.alone else self.group_units, in_order=batch.in_order, only=batch.only
        )
