"""``kainite leases restart-child`` and ``move``, called as from a shell; nobody is there to be asked."""

from __future__ import annotations

import pytest

from kainite.operations import carrying_out
from kainite.operations.leases import AnswerPatience
from support.lease_commands import LeaseCommands

FIRST = "shardId-000000000000"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying_out, "patience", lambda *_: AnswerPatience(0.3, 0.3))


def test_it_is_asked_about_and_the_outcome_is_said(world: LeaseCommands) -> None:
    world.hold(FIRST)
    aborted = world.kainite("restart-child", FIRST, answer="n\n")
    assert (aborted.exit_code, "This will end the child of shardId-000000000000" in aborted.stdout) == (1, True)
    assert "not renewed" not in aborted.stderr
    refused = world.kainite("restart-child", FIRST, answer="y\n")
    assert refused.exit_code == 1
    assert "kainite: refused: worker w has not renewed the lease for 0.3 s" in refused.stderr


def test_what_cannot_be_done_is_not_asked_about(world: LeaseCommands) -> None:
    world.hold(FIRST)
    refused = world.kainite("move", FIRST, "w")
    assert (refused.exit_code, refused.stderr.strip()) == (1, f"kainite: refused: worker w has shard {FIRST} already")
    unknown = world.kainite("restart-child", "shardId-9", "--yes")
    assert (unknown.exit_code, "shard shardId-9 has no lease" in unknown.stderr) == (1, True)
