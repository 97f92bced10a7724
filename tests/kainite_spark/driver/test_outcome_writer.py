"""Outcomes become durable, and only then an acknowledgement goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.store.memory import MemoryStore
from kainite_spark.driver import outcome_writer
from support.apply_world import World, noted


@pytest.mark.parametrize("every", [1, 1_000])
def test_acknowledgements_go_when_the_job_ends_and_their_outcomes_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(outcome_writer, "TIDY_EVERY", every)
    world = World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")
    world.log.unit("T-0", *noted("T-0"))
    world.apply()

    assert world.journal() == ["T-0"]
    assert world.acknowledged() == []
    world.apply()
    assert world.journal() == ["T-0"]
