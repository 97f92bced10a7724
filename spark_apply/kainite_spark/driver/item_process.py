"""A process that runs a function on items, for :mod:`kainite_spark.driver.process_items`, which has the states.

``python -m kainite_spark.driver.item_process N`` reads from the connection with file descriptor N: first the function,
then one pair of task and item after the other; each answer is a list of results, or the error that the function raised,
as text. Nobody but the driver has the other end. When it closes, or the driver dies, the process ends at once, also in
the middle of an item: what an item does in databases is then rolled back.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

from kainite.base import logs
from kainite.base.redaction import redacted

LONGEST_CAUSE: Final = 1000


def serve(driver: Connection) -> None:
    """Answers what the driver asks, for ever."""
    asked: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(driver, asked), daemon=True).start()
    act = asked.get()
    while True:
        task, item = asked.get()
        driver.send(_results(act, task, item))


def _read(driver: Connection, asked: SimpleQueue[Any]) -> None:
    """Reads what is asked; ends the process when nobody can ask any more."""
    try:
        while True:
            asked.put(driver.recv())
    except (EOFError, OSError):
        os._exit(0)


def _results(act: Any, task: Any, item: Any) -> list[Any] | str:
    try:
        return list(act(task, iter((item,))))
    except Exception as error:
        return redacted(f"{type(error).__name__}: {error}")[:LONGEST_CAUSE]


def main() -> None:
    """Serves the driver; signals to its whole group are for the driver alone, which ends what runs."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if not logging.getLogger().hasHandlers():
        logs.configure()
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
