"""The tasks of a log's owner, and its failure: the first error that a task cannot go on from.

============  ========================================================================================================
state         left by
============  ========================================================================================================
going on      a task raises an error, :meth:`OwnerTasks.fail` or :meth:`OwnerTasks.end`: failed. No task dies unnoticed
failed        nothing; every later error is ignored, since the first one is the cause
============  ========================================================================================================
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from kainite.base.errors import KainiteError, LogError, LogUnavailableError
from kainite.base.logs import event
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import LOG_UPKEEP_FAILURES

_logger = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class OwnerTasks:
    """Runs the tasks until one of them fails, or until they are ended.

    Args:
        failed: called with the error, once, when the owner fails.
        meter: counts each time that work is put off.
    """

    def __init__(self, failed: Callable[[KainiteError], None], meter: Meter = SILENT) -> None:
        self._tell = failed
        self._meter = meter
        self._failure: asyncio.Future[KainiteError] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Work) -> None:
        """Starts a task; any error that it raises is the owner's failure."""
        self._tasks.append(asyncio.create_task(self._watched(work)))

    def repeat(self, work: Work, name: str, pause: float) -> None:
        """Starts a task that does its work again and again, also after the store did not answer.

        Args:
            work: the work, which is done again when it returns.
            name: the name of the warning that the store did not answer.
            pause: seconds to wait after this warning.
        """

        async def repeated() -> None:
            while True:
                try:
                    await work()
                except LogUnavailableError as error:
                    event(_logger, logging.WARNING, name, error=error)
                    self._meter.observe(LOG_UPKEEP_FAILURES)
                    await asyncio.sleep(pause)

        self.start(repeated)

    async def failed(self) -> KainiteError:
        """Waits until the owner cannot go on, and returns the error."""
        return await asyncio.shield(self._failure)

    async def end(self, reason: KainiteError) -> Sequence[Exception]:
        """Ends all tasks; an owner without a failure fails with ``reason``. Returns unforeseen errors of tasks."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self.fail(reason)
        return [result for result in results if isinstance(result, Exception)]

    def fail(self, error: KainiteError) -> None:
        """Ends the owner with its first error."""
        if not self._failure.done():
            self._failure.set_result(error)
            self._tell(error)

    async def _watched(self, work: Work) -> None:
        try:
            await work()
        except KainiteError as error:
            self.fail(error)
        except Exception as error:
            self.fail(LogError(f"the log's owner broke: {error!r}"))
            raise
