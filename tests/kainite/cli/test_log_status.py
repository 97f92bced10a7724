"""``kainite log status``: the owner that HEAD names, and whether it was seen to live."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kainite.base.process_identity import ProcessIdentity
from kainite.cli.log_status import LogStatus, lines, observed
from kainite.owner.mount import mount
from kainite.store.memory import MemoryStore
from support.log_cli import LogWorld

ALICE = ProcessIdentity("token", "host-a", pid=7)


class Time:
    """A clock that goes on by sleeping; something may happen then."""

    def __init__(self, happens: Callable[[], object] = lambda: None) -> None:
        self.now = 0.0
        self._happens = happens

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._happens()


def seen(store: MemoryStore, time: Time, limit: float | None = None) -> LogStatus:
    found = observed(store, "0", limit, time.sleep, lambda: time.now)
    assert found is not None
    return found


def test_an_owner_that_sends_heartbeats_is_alive() -> None:
    store = MemoryStore()
    mounted = mount(store, "0", "alice", 10.0, process=ALICE, address="10.0.0.7:7070")
    found = seen(store, Time(lambda: mounted.renew(41)))
    assert found == LogStatus("0", "alice", "process 7 on host-a", "10.0.0.7:7070", 1, True, 0.1, 42, 0)
    assert lines(found, "0") == [
        "log partition 0, generation 1",
        "owned by alice (process 7 on host-a)",
        "others reach it at 10.0.0.7:7070",
        "it sends heartbeats",
        "entries up to 42, of which 0 are truncated",
    ]


@pytest.mark.parametrize(("limit", "waited"), [(None, 2.0), (0.0, 0.0), (0.5, 0.5)])
def test_an_owner_that_is_silent_may_be_dead(limit: float | None, waited: float) -> None:
    store = MemoryStore()
    mount(store, "0", "alice", 2.0, process=ALICE, address="127.0.0.1:9@boot net:[1]")
    found = seen(store, Time(), limit)
    assert (found.alive, found.address) == (None, "127.0.0.1:9")
    assert found.waited == pytest.approx(waited, abs=0.11)
    assert any(line.startswith("no heartbeat was seen within") for line in lines(found, "0"))


def test_a_log_that_was_released_has_no_owner() -> None:
    store = MemoryStore()
    mount(store, "0", "alice", 10.0, process=ALICE).release()
    found = seen(store, Time())
    assert (found.owner, found.alive, found.waited) == (None, False, 0.0)
    assert "nobody owns it: the last owner has released it" in lines(found, "0")


def test_a_log_that_never_had_an_owner_says_so() -> None:
    assert observed(MemoryStore(), "0", None) is None
    assert lines(None, "0") == ["log partition 0 was never owned by anybody"]


async def test_the_command_prints_what_head_says(log_world: LogWorld) -> None:
    status, output, errors = await log_world.kainite("log", "status", "--wait", "0", "--json")
    assert status == 0, errors
    assert json.loads(output)["partition"] == "0"
    status, output, _ = await log_world.kainite("log", "status", "--wait", "0")
    assert status == 0
    assert output.startswith("log partition 0, generation ")
    assert "no request waits for the owner" in output
