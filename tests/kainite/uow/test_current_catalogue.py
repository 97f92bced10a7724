"""The catalogue is read again when asked for: once for all who ask meanwhile, and with a pause between two reads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.current_catalogue import CurrentCatalogue
from support.tables import SHOP
from support.waiting import until

LATER = Catalogue({**SHOP.tables, "more": SHOP.tables["orders"]}, "public")


class Source:
    """What the target answers, one answer a read; the last one repeats."""

    def __init__(self, *answers: Catalogue | Exception) -> None:
        self.answers = list(answers)
        self.reads = 0
        self.gate = threading.Event()
        self.gate.set()

    def load(self) -> Catalogue:
        self.reads += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        assert self.gate.wait(10)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_another_catalogue_gives_other_rules_and_the_same_one_does_not() -> None:
    source = Source(SHOP, SHOP, LATER)
    current = await CurrentCatalogue.read(source.load)
    current._interval = 0.0  # noqa: SLF001
    before = current.signing
    await current.read_again()
    assert current.signing is before
    await current.read_again()
    assert current.signing.catalogue == LATER


@pytest.mark.parametrize("error", [TargetUnavailableError("away"), CatalogueError("no tables")])
async def test_a_read_that_fails_changes_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    current = CurrentCatalogue(Source(error).load, SHOP, interval=0.0)
    await current.read_again()
    assert current.signing.catalogue == SHOP
    assert "catalogue not read" in caplog.messages


async def test_who_asks_during_a_read_gets_a_read_that_began_afterwards_and_shares_it() -> None:
    source = Source(SHOP, LATER)
    current = CurrentCatalogue(source.load, SHOP, interval=0.0)
    source.gate.clear()
    first = asyncio.create_task(current.read_again())
    await until(lambda: source.reads == 1)
    others = [asyncio.create_task(current.read_again()) for _ in range(5)]
    await asyncio.sleep(0)
    source.gate.set()
    await asyncio.gather(first, *others)
    assert source.reads == 2
    assert current.signing.catalogue == LATER


async def test_a_read_waits_until_the_interval_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    current = CurrentCatalogue(Source(SHOP).load, SHOP, interval=3.0, clock=lambda: 100.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    await current.read_again()
    await current.read_again()
    assert waited == [0.0, 3.0]
