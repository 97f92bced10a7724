"""The part of a round that acts on the target: what a failure stops, and what is discarded."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.settings import OnFailure
from kainite.store.memory import MemoryStore
from support.apply_world import World, insert, noted


def test_with_stop_nothing_is_applied_behind_a_failed_unit(tmp_path: Path) -> None:
    world = World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")
    world.log.unit("bad", insert(1, -1))
    with pytest.raises(TargetRejectedError, match="onUowFailure is stop"):
        world.apply(OnFailure.STOP)
    world.log.unit("T-1", *noted("T-1"))
    with pytest.raises(TargetRejectedError, match="unit bad"):
        world.apply(OnFailure.STOP)

    assert world.journal() == []


def test_a_micro_batch_applies_what_nothing_holds_back(tmp_path: Path) -> None:
    world = World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")
    world.log.unit("bad", insert(1, -1))
    world.log.unit("T-1", *noted("T-1"))
    job = world.apply()

    assert world.journal() == ["T-1"]
    assert job.summary.micro_batches > 0
