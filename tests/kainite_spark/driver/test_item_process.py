"""One process that runs a function on items, driven by its connection alone."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import support
from support.item_functions import quotients

PATH = str(Path(support.__path__[0]).parent)


@contextmanager
def serving() -> Iterator[tuple[Connection, subprocess.Popen[bytes]]]:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-m", "kainite_spark.driver.item_process", str(number)]
        process = subprocess.Popen(command, pass_fds=[number], env={"PYTHONPATH": PATH})
    with process, Connection(ours.detach()) as connection:
        connection.send(quotients)
        yield connection, process
        process.kill()


def test_results_are_lists_and_an_error_of_the_function_is_text() -> None:
    with serving() as (connection, _):
        connection.send((6, 2))
        connection.send((6, 0))
        connection.send((6, 3))
        assert [connection.recv() for _ in range(3)] == [[3.0], "ZeroDivisionError: division by zero", [2.0]]


def test_signals_to_the_group_are_for_the_driver_and_the_end_of_its_connection_ends_the_process() -> None:
    with serving() as (connection, process):
        connection.send((6, 2))
        assert connection.recv() == [3.0]
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        connection.send((6, 3))
        assert connection.recv() == [2.0]
        connection.close()
        assert process.wait(60) == 0
