"""Pipes on the event loop: a writer that queues without copying, and a reader that can pause.

asyncio's own pipe transports copy what they queue, and they take a broken pipe for the end of the conversation even
when nothing is left to write. Here lines have megabytes, and a child may close its input after its last request.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import IO

READ_SIZE = 64 * 1024
PIECES_A_WRITE = 64  # of some 80 KB each, many times what a pipe takes; the kernel allows 1024
PIPE_SIZE = 2**20  # the most that Linux grants to any user (/proc/sys/fs/pipe-max-size)


def enlarge(pipe: IO[bytes]) -> None:
    """Enlarges the pipe, so that a batch takes fewer switches between the two processes."""
    try:
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except OSError:
        return  # Linux limits the pages that a user has for pipes: the pipe keeps its size, and works


class PipeWriter:
    """Writes without waiting; queues, without copying, the bytes that the pipe does not take yet.

    The caller bounds the queue by writing one request at a time.

    Args:
        pipe: the writing end. The writer owns it.
        on_broken: called once, when the other process has closed its end before everything was written.
    """

    def __init__(self, pipe: IO[bytes], on_broken: Callable[[], None]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._on_broken = on_broken
        self._queue: deque[memoryview] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        os.set_blocking(self._fd, False)

    def write(self, *pieces: bytes) -> None:
        """Writes the pieces, or queues what cannot be written yet. Does nothing after :meth:`close`.

        Each piece is let go as soon as it is written.
        """
        if self._pipe.closed:
            return
        self._queue.extend(map(memoryview, pieces))
        if not self._waiting:
            self._flush()

    def close(self) -> None:
        """Closes the pipe and drops the queue. May be called again."""
        self._watch(False)
        self._queue.clear()
        self._pipe.close()

    def _flush(self) -> None:
        try:
            while self._queue:
                self._forget(os.writev(self._fd, tuple(islice(self._queue, PIECES_A_WRITE))))
        except BlockingIOError:
            self._watch(True)
        except OSError:
            self.close()
            self._on_broken()
        else:
            self._watch(False)

    def _forget(self, written: int) -> None:
        """Lets so many bytes at the head of the queue go."""
        while self._queue and written >= len(self._queue[0]):
            written -= len(self._queue.popleft())
        if written:
            self._queue[0] = self._queue[0][written:]

    def _watch(self, wanted: bool) -> None:
        if wanted and not self._waiting:
            self._loop.add_writer(self._fd, self._flush)
        elif self._waiting and not wanted:
            self._loop.remove_writer(self._fd)
        self._waiting = wanted


class PipeReader:
    """Hands each chunk on as soon as it is there.

    Args:
        pipe: the reading end. The reader owns it.
        on_data: called with each chunk.
        on_end: called once, when all writers have closed their end.
    """

    def __init__(self, pipe: IO[bytes], on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._reading = False
        os.set_blocking(self._fd, False)
        self.resume()

    def pause(self) -> None:
        """Stops reading: when the pipe is full, the writing process waits (back-pressure)."""
        if self._reading:
            self._loop.remove_reader(self._fd)
            self._reading = False

    def resume(self) -> None:
        if not self._reading and not self._pipe.closed:
            self._loop.add_reader(self._fd, self._read)
            self._reading = True

    def drain(self) -> None:
        """Hands on what the pipe holds now, up to its size."""
        for _ in range(PIPE_SIZE // READ_SIZE + 1):
            if self._pipe.closed or not self._read():
                return

    def close(self) -> None:
        """Closes the pipe. May be called again."""
        self.pause()
        self._pipe.close()

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return False
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_end()
        return bool(data)
