"""A daemon that is cut off gives its shards back, again and again, and says so once. The whole: test_supervisor.py."""

from __future__ import annotations

import asyncio

import pytest

from kainite.worker import cut_off
from support.waiting import until


class World:
    """A log that may be cut off, and shards; counts since its state changed how often either was asked."""

    def __init__(self) -> None:
        self.change(cut=False)

    def change(self, *, cut: bool) -> None:
        self._cut = cut
        self.looks = self.given_back = 0

    @property
    def is_cut_off(self) -> bool:
        self.looks += 1
        return self._cut

    async def give_back(self) -> None:
        self.given_back += 1


async def test_shards_are_given_back_while_the_log_is_not_reached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cut_off, "LOOK_EVERY_S", 0.001)
    world = World()
    task = asyncio.create_task(cut_off.give_back_while_cut_off(world, world))
    try:
        for times in (1, 2):
            world.change(cut=True)
            await until(lambda: world.given_back > 2)
            assert caplog.messages == ["shards given back: the log's owner is not reached"] * times
            world.change(cut=False)
            await until(lambda: world.looks > 2)
            assert world.given_back == 0
    finally:
        task.cancel()
