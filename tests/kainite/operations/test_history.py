"""What people did, from the log and from its inbox."""

from __future__ import annotations

import pytest

from kainite.base.clock import epoch_ms
from kainite.operations.history import read_history
from kainite.store.memory import MemoryStore
from support.upkept_log import OwnedLog, P


@pytest.fixture
def log() -> OwnedLog:
    return OwnedLog(MemoryStore())


def shown(log: OwnedLog, since_ms: int = 0) -> list[tuple[str, str, str]]:
    return [(one.what, one.result, one.outcome) for one in read_history(log.store, P, since_ms)]


async def test_what_waits_for_an_owner_is_shown_too(log: OwnedLog) -> None:
    at = epoch_ms()
    log.store.put_request(P, {"action": "retry", "uow": "A", "by": "me", "at": str(at)})
    record = {"action": "record", "by": "me", "what": "move a lease", "about": "shard 7"}
    of = log.store.put_request(P, record | {"at": str(at + 2)})
    assert shown(log) == [("retry", "asked", ""), ("move a lease", "asked", "")]
    log.store.put_request(P, record | {"at": str(at + 4), "of": of, "result": "failed", "outcome": "away"})
    assert shown(log, since_ms=at + 1) == [("move a lease", "failed", "away")]
    await log.run()
    refused = "no unit 'A' is failed or in progress; see kainite log show"
    assert shown(log) == [("retry units", "refused", refused), ("move a lease", "failed", "away")]
    assert [one.at_ms for one in read_history(log.store, P)] == [at, at + 2]


async def test_an_outcome_that_waits_is_laid_over_what_the_log_has(log: OwnedLog) -> None:
    record = {"action": "record", "by": "me", "what": "move a lease", "about": "shard 7"}
    of = log.store.put_request(P, record)
    await log.run()
    log.store.put_request(P, record | {"of": of, "result": "done", "outcome": "it moved"})
    assert shown(log) == [("move a lease", "done", "it moved")]
