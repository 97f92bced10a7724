"""Safeguards against a target that was set back, and how soon the schedules notice."""

from __future__ import annotations

from typing import Any

from simulation.mutation import Mutation, answering

SET_BACK = "target set back"
CHECK = "kainite_spark.targets.sqlite.target:check_mark"


def _only_the_fence(original: Any) -> Any:
    """Does not ask for the units that were committed under the mark's fence."""
    return lambda name, mark, found, acknowledged: original(name, mark, found, len(mark.tids))


def _not_at_the_start(original: Any) -> Any:
    """Raises the generation without a comparison, as ``--adopt-target`` does."""
    return lambda self, mark: original(self, None)


OF_THE_TARGET: tuple[Mutation, ...] = (
    Mutation("a target that went back is refused", CHECK, answering(None), 20, aim=SET_BACK),
    Mutation("a target that went back is refused at the start",
             "kainite_spark.driver.micro_batches:MicroBatches.raise_generation", _not_at_the_start, 20, aim=SET_BACK),
    Mutation("the units of the latest micro-batch are in the target", CHECK, _only_the_fence, 400, aim=SET_BACK),
)  # fmt: skip
