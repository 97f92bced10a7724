"""Looks at HEAD: what each state of it means to the membership."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.log.state.summary import DurableMark, LogSummary, TargetFigure, as_text
from kainite.owner.mount import LeaseWatch, mount
from kainite.peers.address import of_listener
from kainite.peers.sharing.head_look import HeadLook, ToldOnce
from kainite.peers.sharing.membership import HeadSeen, HeadUnread
from kainite.peers.sharing.present_log import PresentLog
from kainite.store.memory import MemoryStore

TARGETS = (TargetFigure("crm", 0, 0),)
ME, OTHER = ProcessIdentity("me"), ProcessIdentity("other")


def look_of(store: LogStore) -> HeadLook:
    present = PresentLog(lambda: 0.0, 1.0)
    return HeadLook(store, "0", "w", ME, LeaseWatch(lambda: 0.0), present, ToldOnce())


async def test_a_partition_that_was_never_mounted_is_free() -> None:
    assert await look_of(MemoryStore()).look() == HeadSeen(0, free=True)


async def test_a_held_partition_names_its_owners_address() -> None:
    store, address = MemoryStore(), of_listener("127.0.0.1", 9)
    mount(store, "0", "other", 1000.0, process=OTHER, address=address.as_text())
    looking = look_of(store)
    assert await looking.look() == HeadSeen(1, False, address)
    assert looking.present_log.held_elsewhere
    assert looking.elsewhere() == address.as_text()


@pytest.mark.parametrize(
    ("address", "said"), [("", "takes no connections"), ("127.0.0.1:9@far", "set logListen there")]
)
async def test_an_owner_that_is_not_reached_is_waited_for_and_told_once(
    address: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    mount(store, "0", "other", 1000.0, process=OTHER, address=address)
    looking = look_of(store)
    for _ in range(2):
        assert await looking.look() == HeadSeen(1, False, None)
    assert len(caplog.records) == 1
    assert said in str(vars(caplog.records[0]))


async def test_what_this_process_owns_itself_is_not_elsewhere() -> None:
    store = MemoryStore()
    mount(store, "0", "w", 1000.0, process=ME, address="10.0.0.7:7070")
    looking = look_of(store)
    assert isinstance(await looking.look(), HeadSeen)
    assert looking.elsewhere() == ""


@pytest.mark.parametrize(
    ("owner", "summary", "differs"),
    [
        (OTHER, as_text(LogSummary(1, 0, DurableMark(0, 0, 0), assigned="theirs", targets=TARGETS)), True),
        (OTHER, as_text(LogSummary(1, 0, DurableMark(0, 0, 0))), True),
        (OTHER, as_text(LogSummary(1, 0, DurableMark(0, 0, 0), assigned="mine", targets=TARGETS)), False),
        (OTHER, "", False),
        (ME, as_text(LogSummary(1, 0, DurableMark(0, 0, 0), assigned="theirs", targets=TARGETS)), False),
    ],
    ids=[
        "others",
        "one target",
        "the same",
        "an owner that tells nothing",
        "an owner here",
    ],
)
async def test_an_owner_with_other_targets_is_known_by_its_summary(
    owner: ProcessIdentity, summary: str, differs: bool
) -> None:
    store = MemoryStore()
    mounted = mount(store, "0", "other", 1000.0, process=owner)
    mounted.renew(summary=summary)
    looking = look_of(store)
    looking.assigned = "mine"
    seen = await looking.look()
    assert isinstance(seen, HeadSeen)
    assert seen.differs is differs
    assert looking.other_targets() == ("other" if differs else "")


async def test_a_store_that_does_not_answer_tells_nothing() -> None:
    class Silent(MemoryStore):
        def read_head(self, partition: str) -> None:
            raise LogUnavailableError("gone")

    looking = look_of(Silent())
    looking.present_log.held_elsewhere = True
    assert await looking.look() == HeadUnread()
    assert not looking.present_log.held_elsewhere
