"""Operations of the log's owner: asked for, previewed, refused."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import Asker
from kainite.operations.operation import MOST_CORRECTION, CorrectUnit, PauseApply, SkipNumbers
from kainite.operations.owners import ask_owner, preview_owners
from kainite.settings import load
from support.log_cli import LogWorld
from support.waiting import until

ANN = Asker("ann", "a test")


async def test_a_correction_is_judged_before_it_is_sent_and_nothing_is_recorded(log_world: LogWorld) -> None:
    correction = CorrectUnit("bad", "bad-fixed", '[{"table": "t", "op": "delete", "key": {"id": 1}}]')
    before = log_world.owner.state.next_id
    preview = await asyncio.to_thread(preview_owners, log_world.store, "0", correction, 30.0)
    assert preview.refusal == "the target's catalogue is not known here"
    assert "append bad-fixed to the log" in preview.does
    assert (log_world.owner.state.next_id, log_world.owner.state.operations.all()) == (before, [])
    large = CorrectUnit("bad", "bad-fixed", "x" * (MOST_CORRECTION + 1))
    assert "larger than" in preview_owners(log_world.store, "0", large, 0.0).refusal
    assert ask_owner(log_world.store, "0", large, ANN, 0.0).result is OperationResult.REFUSED
    assert await asyncio.to_thread(log_world.store.read_requests, "0") == []


async def test_the_owner_carries_out_or_refuses(log_world: LogWorld) -> None:
    operations = Operations(load(log_world.properties, needs=("applicationName",)))
    done = await asyncio.to_thread(operations.carry_out, PauseApply(), "ann", "a test")
    refused = await asyncio.to_thread(operations.carry_out, SkipNumbers(3), "ann")
    assert (done.result, refused.result) == (OperationResult.DONE, OperationResult.REFUSED)
    assert "uowOrder is not dense" in refused.sentence
    await until(lambda: log_world.owner.state.operations.all())


async def test_without_an_owner_the_check_says_so(log_world: LogWorld) -> None:
    with pytest.raises(LogUnavailableError, match="no answer for the check of the correction of unit bad"):
        preview_owners(log_world.store, "of nobody", CorrectUnit("bad", "b", "[]"), 0.0)
