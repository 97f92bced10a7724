"""The outcomes partition, to which the apply job appends units' outcomes until the owner copies them into the log."""

from __future__ import annotations

from collections.abc import Iterable

from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Outcome, StatusMeta
from kainite.log.state.loading import read_from_low


def outcomes_partition(partition: str, target: str = "") -> str:
    """Returns the name of the log partition that has the outcomes of the units of ``partition``.

    Args:
        partition: the main log's.
        target: one of several targets, each of which has outcomes of its own; empty for the only target.
    """
    return f"{partition}:{target}:outcomes" if target else f"{partition}:outcomes"


def outcomes_of(batches: Iterable[Batch], first_id: int) -> tuple[Outcome, ...]:
    """Returns all outcomes in the entries of ``batches`` from ``first_id`` on, in order."""
    metas = (entry.meta for batch in batches for _, entry in batch.entries_from(first_id))
    return tuple(outcome for meta in metas if isinstance(meta, StatusMeta) for outcome in meta.outcomes)


def stored_batches(store: LogStore, partition: str, target: str = "") -> list[Batch]:
    """Returns the batches of the outcomes partition of ``partition`` and a target that are not truncated.

    Raises:
        LogCorruptError: the partition does not read back as written.
    """
    outcomes = outcomes_partition(partition, target)
    return read_from_low(store, outcomes, lambda low: list(store.read_batches(outcomes, low, data=False, strong=True)))
