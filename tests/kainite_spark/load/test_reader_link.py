"""A driver hears whether a reader works, is gone, or is frozen, and ends one that is frozen."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from kainite_spark.load.reader_link import ReaderLink, reader_links
from kainite_spark.load.snapshot_reader import CheckReader, ReaderAnswer, ReadStep

LIMIT_S = 10.0
LISTENER = """
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(); print("listens", flush=True)
server.accept()[0].recv(1); sys.stdin.read()
"""


def line(answer: ReaderAnswer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


@contextmanager
def reader(path: Path, answer: Callable[[socket.socket, bytes], None]) -> Iterator[None]:
    """Listens as a reader does; answers the first request of one connection, then closes it."""
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(LIMIT_S)

        def serve() -> None:
            connection, _ = server.accept()
            with closing(connection), connection.makefile("rb") as lines:
                if request := lines.readline():
                    answer(connection, request)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join(LIMIT_S)


def test_an_answer_is_waited_for_behind_signs_of_life(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        asked.append(request)
        for sent in (ReaderAnswer(works=True), ReaderAnswer(works=True), ReaderAnswer(outcome="done")):
            connection.sendall(line(sent))

    with reader(tmp_path / "1.sock", answer), closing(ReaderLink(tmp_path / "1.sock", LIMIT_S)) as link:
        assert link.ask(ReadStep(3, 4)) == ReaderAnswer(outcome="done")
    assert [msgspec.json.decode(one, type=ReadStep) for one in asked] == [ReadStep(3, 4)]


@pytest.mark.parametrize("before", [b"", line(ReaderAnswer(works=True))])
def test_a_reader_that_ends_is_told_as_gone(tmp_path: Path, before: bytes) -> None:
    with (
        reader(tmp_path / "1.sock", lambda connection, _: connection.sendall(before)),
        closing(ReaderLink(tmp_path / "1.sock", LIMIT_S)) as link,
        pytest.raises(ConnectionError),
    ):
        link.ask(CheckReader())


def test_a_frozen_reader_is_killed_and_nobody_comes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "1.sock"
    with subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        with closing(ReaderLink(path, 0.2)) as link, pytest.raises(TimeoutError, match=r"nothing for 0\.2 s"):
            link.ask(CheckReader())
        assert process.wait(LIMIT_S) == -signal.SIGKILL
        assert not path.exists()


def test_the_readers_that_live_are_connected(tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as gone:
        gone.bind(str(tmp_path / "0.sock"))
    with (
        reader(tmp_path / "1.sock", lambda connection, _: connection.sendall(line(ReaderAnswer(file="f")))),
        reader_links(tmp_path, LIMIT_S) as links,
    ):
        assert [link.ask(CheckReader()).file for link in links] == ["f"]
    with reader_links(tmp_path / "none", LIMIT_S) as none:
        assert none == []
