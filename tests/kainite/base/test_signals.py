from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from kainite.base import signals
from kainite.base.signals import Signals


@dataclass
class Daemon:
    """The effects of signals."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    kills: int = 0

    def kill(self) -> None:
        self.kills += 1
        self.killed.set()


@pytest.fixture
async def daemon() -> AsyncIterator[Daemon]:
    daemon = Daemon()
    handlers = Signals(daemon.stop, daemon.kill, daemon.reload)
    yield daemon
    handlers.remove()


async def send(number: signal.Signals, effect: asyncio.Event) -> None:
    """Sends a signal to this process, and waits until it has its effect."""
    os.kill(os.getpid(), number)
    async with asyncio.timeout(20):
        await effect.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_stops(daemon: Daemon, number: signal.Signals) -> None:
    await send(number, daemon.stop)
    assert not daemon.kills


async def test_a_second_signal_within_a_second_is_the_same_request(daemon: Daemon) -> None:
    await send(signal.SIGINT, daemon.stop)
    os.kill(os.getpid(), signal.SIGTERM)
    await send(signal.SIGHUP, daemon.reload)  # handled after the signal before it
    assert not daemon.kills


async def test_a_later_signal_kills_once(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "SECOND_AFTER_S", 0.0)
    await send(signal.SIGTERM, daemon.stop)
    await send(signal.SIGTERM, daemon.killed)
    os.kill(os.getpid(), signal.SIGTERM)
    await send(signal.SIGHUP, daemon.reload)
    assert daemon.kills == 1


async def test_a_hangup_asks_for_the_settings_each_time(daemon: Daemon) -> None:
    for _ in range(2):
        await send(signal.SIGHUP, daemon.reload)
        daemon.reload.clear()
    assert not daemon.stop.is_set()


async def test_removed_handlers_leave_the_signals_to_python() -> None:
    daemon = Daemon()
    handlers = Signals(daemon.stop, daemon.kill, daemon.reload)
    handlers.remove()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    handlers.remove()
