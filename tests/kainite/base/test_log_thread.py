"""Log lines go out in order by a thread; a reader that stands still costs lines, which are counted, and no time."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kainite.base import log_thread
from kainite.base.log_thread import LineQueue, lines_dropped, log_in_thread
from support.waiting import eventually

LONG_S = 60.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Returns the reading and the writing end of a pipe."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read(descriptor: int, size: int) -> str:
    data = b""
    while len(data) < size:
        data += os.read(descriptor, size - len(data))
    return data.decode()


def filled(lines: LineQueue, line: str) -> int:
    """Writes until the queue is full; returns how many lines it took."""
    taken = 0
    while not lines.dropped:
        lines.write(line)
        taken += 1
    return taken - 1


def test_lines_come_in_order_and_whole(pipe: tuple[int, int]) -> None:
    lines = LineQueue(pipe[1], 1000)
    wanted = "".join(f"{number} é\n" for number in range(100))
    for line in wanted.splitlines(keepends=True):
        lines.write(line)
    assert lines.end(LONG_S)
    assert read(pipe[0], len(wanted.encode())) == wanted


def test_a_reader_that_stands_still_costs_lines_and_says_how_many(pipe: tuple[int, int]) -> None:
    lines = LineQueue(pipe[1], lines=4)
    line = "x" * 99_999 + "\n"
    taken = filled(lines, line)
    for _ in range(2):
        lines.write("lost\n")
    assert lines.dropped == 3
    assert not lines.end(0.0)

    said = "... 3 log lines dropped: nobody read them in time\n"
    shown = read(pipe[0], taken * len(line) + len(said))
    assert shown == line + said + line * (taken - 1)
    assert lines.end(LONG_S)


def test_a_reader_that_has_gone_ends_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    lines = LineQueue(writing, 1000)
    lines.write("nobody sees it\n")
    eventually(lambda: lines.dropped == 1)
    assert lines.end(LONG_S)
    os.close(writing)


def test_a_program_logs_through_the_thread_and_gets_its_stream_back(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(pipe[1], "w", closefd=False) as stream:
        handler = logging.StreamHandler(stream)
        monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
        with log_in_thread():
            logging.getLogger().warning("in the thread")
            assert isinstance(handler.stream, LineQueue)
            assert lines_dropped() == 0
        assert handler.stream is stream
    assert read(pipe[0], len("in the thread\n")) == "in the thread\n"


def test_a_program_ends_although_nobody_reads(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_thread, "LAST_LINES_S", 0.01)
    monkeypatch.setattr(log_thread, "LINES", 4)
    with open(pipe[1], "w", closefd=False) as stream:
        handler = logging.StreamHandler(stream)
        monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
        with log_in_thread():
            lines = handler.stream
            assert isinstance(lines, LineQueue)
            filled(lines, "x" * 99_999 + "\n")
        logging.getLogger().warning("after the end")
        assert lines_dropped() == 2
        os.set_blocking(pipe[0], False)
        while not lines.end(0.01):  # lets the thread end before its pipe is closed
            read_some(pipe[0])


def read_some(descriptor: int) -> None:
    with suppress(BlockingIOError):
        os.read(descriptor, 1 << 20)


def test_a_stream_without_a_file_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    with log_in_thread():
        assert not isinstance(handler.stream, LineQueue)
