"""The settings that a running daemon works with, read again on request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.child.program_lookup import find_program
from kainite.settings import Settings
from kainite.settings.loading.reload import changes, in_force, reread

logger = logging.getLogger(__name__)


class SettingsInForce:
    """The current settings; a file with a mistake leaves them as they are.

    Attributes:
        current: replaced by :meth:`follow`; a change that needs a restart is left out of it.
    """

    def __init__(self, settings: Settings) -> None:
        self.current = settings

    async def follow(
        self,
        reload: asyncio.Event,
        changed: Callable[[Settings], None],
        asked: Callable[[], None] = lambda: None,
    ) -> NoReturn:
        """Reads the settings file again each time ``reload`` is set, until cancelled.

        Args:
            reload: cleared by this method.
            changed: called with the settings that are in force from then on.
            asked: called each time, also where the settings file has a mistake.
        """
        while True:
            await reload.wait()
            reload.clear()
            asked()
            try:
                fresh = await asyncio.to_thread(reread, self.current)
                find_program(fresh.child)
            except SettingsError as error:
                event(logger, logging.ERROR, "settings not read again: the old ones hold", error=error)
                continue
            for change in changes(self.current, fresh):
                level = logging.INFO if change.reload.is_followed else logging.WARNING
                event(logger, level, "setting changed", key=change.key, takes_effect=change.reload.value)
            self.current = in_force(self.current, fresh)
            changed(self.current)
            event(logger, logging.INFO, "settings read again", file=fresh.path)
