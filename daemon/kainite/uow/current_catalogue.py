"""The catalogue as it is now: read at the start, and again whenever something unknown is met.

States: no read, or one read under way (the lock is held). The rules that follow from the catalogue
(:class:`~kainite.uow.signing.Signing`) are replaced as a whole when a read shows another catalogue; who holds the old
rules may finish with them, and judges anew. A read that fails leaves the rules as they are, and is reported.

:meth:`CurrentCatalogue.read_again` returns after a read that *began* after the call, so the read saw every change of
the target that its caller knows of. Reads begin at least ``interval`` seconds apart, whoever asks; callers that ask
meanwhile share the next read. Nothing here is durable: a new process reads at its start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kainite.base.clock import boot_seconds
from kainite.base.errors import CatalogueError, MissingExtraError, TargetError
from kainite.base.logs import event
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.signing import Signing

_logger = logging.getLogger(__name__)

READ_INTERVAL_S = 1.0
"""Least time, in seconds, between two reads of the catalogue while units of work come that do not fit it."""


class CurrentCatalogue:
    """The target's tables as they were last read. All methods belong to one event loop.

    Args:
        load: reads the catalogue; called on threads.
        catalogue: what was read at the start.
        interval: least seconds between two reads.
        clock: measures them.
    """

    def __init__(
        self,
        load: Callable[[], Catalogue | None],
        catalogue: Catalogue | None,
        *,
        interval: float = READ_INTERVAL_S,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        self._load = load
        self._interval = interval
        self._clock = clock
        self._reading = asyncio.Lock()
        self._begun = 0  # reads so far, the one under way included
        self._next = clock()
        self.signing = Signing(catalogue)
        """The rules that follow from the catalogue; another object when the catalogue is another one."""

    @classmethod
    async def read(cls, load: Callable[[], Catalogue | None]) -> CurrentCatalogue:
        """Reads the catalogue for the first time; raises what ``load`` raises."""
        return cls(load, await asyncio.to_thread(load))

    async def read_again(self) -> None:
        """Returns after a read that began after the call. Callers at the same time share one read."""
        begun = self._begun
        async with self._reading:
            if self._begun == begun:
                await asyncio.sleep(self._next - self._clock())
                self._next = self._clock() + self._interval
                self._begun += 1
                await self._read()

    async def _read(self) -> None:
        try:
            catalogue = await asyncio.to_thread(self._load)
        except (CatalogueError, MissingExtraError, TargetError) as error:
            event(_logger, logging.WARNING, "catalogue not read", error=error)
            return
        if catalogue != self.signing.catalogue:
            before = self.signing.scheme.id
            self.signing = await asyncio.to_thread(Signing, catalogue)
            after = self.signing.scheme.id
            event(_logger, logging.INFO, "catalogue changed", scheme=after, signatures=before != after)
