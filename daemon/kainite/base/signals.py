"""Handles the signals of a running daemon.

==================  =========================================================================
SIGTERM, SIGINT     stop gracefully; a second one, at least a second later, kills the children
SIGHUP              read the settings file again
==================  =========================================================================

A service manager, or a shell's Ctrl-C beside it, may deliver the first signal twice within milliseconds. Both mean
one request to stop, so a signal within a second of the first one does not kill.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from kainite.base.logs import event

logger = logging.getLogger(__name__)

SECOND_AFTER_S = 1.0


async def until_stopped(work: Callable[[asyncio.Event, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Runs a program's work until it ends, or is killed by a second signal; returns the exit status.

    Args:
        work: the program's work; takes an event that asks it to stop, and one that asks it to read its settings again.
    """
    stop, reload = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(work(stop, reload))
    signals = Signals(stop, working.cancel, reload)
    try:
        await working
    except asyncio.CancelledError:
        return 1
    finally:
        signals.remove()
    return 0


class Signals:
    """Installs the handlers on the running loop, until :meth:`remove`.

    Args:
        stop: set by the first SIGTERM or SIGINT.
        kill: called by the second one.
        reload: set by each SIGHUP; whoever obeys clears it.
    """

    def __init__(self, stop: asyncio.Event, kill: Callable[[], object], reload: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._kill = kill
        self._stopped_at = 0.0
        self._killed = False
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_stop, number)
        self._loop.add_signal_handler(signal.SIGHUP, reload.set)

    def remove(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.remove_signal_handler(number)

    def _on_stop(self, number: signal.Signals) -> None:
        now = self._loop.time()
        if not self._stop.is_set():
            event(logger, logging.INFO, "stopping", signal=number.name)
            self._stopped_at = now
            self._stop.set()
        elif not self._killed and now - self._stopped_at >= SECOND_AFTER_S:
            self._killed = True
            event(logger, logging.WARNING, "killing", signal=number.name)
            self._kill()
