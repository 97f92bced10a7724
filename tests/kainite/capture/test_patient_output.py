"""Output to a pipe that nobody reads for a while."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kainite.capture.patient_output import HELD_BYTES, PatientOutput

LIMIT = 60.0


def test_what_is_called_meanwhile_is_called_until_the_reader_takes_what_is_there() -> None:
    reading, writing = os.pipe()
    called = threading.Event()
    payload = os.urandom(4 * 2**20)  # more than a pipe holds
    output = PatientOutput(writing, called.set, every=0.01)

    def write() -> None:
        output.write(payload)
        output.flush()
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    assert called.wait(LIMIT), "nobody reads, and the writer is silent"
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == payload
    writer.join(LIMIT)


def test_small_writes_are_held_until_a_flush(tmp_path: Path) -> None:
    file = tmp_path / "file"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    output = PatientOutput(descriptor, lambda: None)
    output.write(b"abc")
    assert file.read_bytes() == b""
    output.flush()
    output.write(b"x" * HELD_BYTES)
    assert file.read_bytes() == b"abc" + b"x" * HELD_BYTES
    os.close(descriptor)


def test_a_reader_that_is_gone_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = PatientOutput(writing, lambda: None)
    output.write(b"x")
    with pytest.raises(BrokenPipeError):
        output.flush()
    os.close(writing)
