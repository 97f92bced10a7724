"""One task that reads a shard ahead of its child, and the bounded queue of the batches that it has read.

States: *made* → :meth:`ReadAhead.start` → *reading* → *ended* (the queue ends with the shard's end, or with an error
that waiting does not mend) or *closed*. A defect that ends the task ends the queue too, with an error: the consumer
reports it and reads anew, and nobody waits for a reader that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.read.prefetch import Bounds, Prefetch
from kainite.kinesis.read.reading_watch import ReadingWatch
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd


class ReadAhead:
    """The task and the queue of one reader.

    Args:
        shard_id: the shard that is read.
        bounds: the bounds of what is read ahead.
        run: reads into :attr:`queue` until the end; called once, when reading starts.
        name: the task's name.

    Attributes:
        queue: the batches that were read and not taken yet.
        wanted: set when somebody waits for nothing but the reading; a reader that polls may read sooner then.
        watch: tells whether the reading gets on; the reader keeps it up to date.
    """

    def __init__(
        self, shard_id: str, bounds: Bounds, run: Callable[[], Coroutine[None, None, None]], name: str
    ) -> None:
        self.queue = Prefetch(bounds)
        self.watch = ReadingWatch()
        self.wanted = asyncio.Event()
        self._shard_id = shard_id
        self._run = run
        self._name = name
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to read; a second call does nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._read(), name=self._name)

    async def next(self) -> RecordBatch | ShardEnd:
        """Returns the next batch, and after the last one the shard's end, as often as asked; starts to read.

        Raises:
            KainiteError: the error that ended the queue.
            StreamError: the reader is closed.
        """
        self.start()
        return await self.queue.take()

    async def _read(self) -> None:
        try:
            await self._run()
        except Exception as error:
            failed = StreamUnavailableError(f"the reader of shard {self._shard_id} failed: {error!r}")
            failed.__cause__ = error
            self.queue.end(failed)

    async def close(self) -> None:
        """Ends the queue and cancels the task; returns when the task has ended."""
        self.queue.end(StreamError(f"the reader of shard {self._shard_id} is closed"))
        if self._task is not None:
            self._task.cancel()
            # Not "await self._task": the caller's own cancellation must come through.
            await asyncio.wait({self._task})
