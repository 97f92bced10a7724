"""Bytes are written whole although a pipe takes few of them at a time."""

from __future__ import annotations

import os
import threading

import pytest

from kainite.base.whole_write import write_whole


def test_all_bytes_arrive_through_a_pipe_that_is_smaller() -> None:
    reading, writing = os.pipe()
    data, read = os.urandom(300_000), bytearray()
    writer = threading.Thread(target=write_whole, args=(writing, data))
    writer.start()
    while len(read) < len(data):
        read += os.read(reading, len(data))
    writer.join()
    os.close(reading)
    os.close(writing)
    assert read == data


def test_nobody_who_reads_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_whole(writing, b"x")
    os.close(writing)
