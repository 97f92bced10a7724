"""Looks at a database again and again, in a thread with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kainite.base.errors import DemoError
from kainite_demo.reading import DatabaseReading, reading

_PAUSE = 0.05


class Watching:
    """Calls ``look`` with a connection until the ``with`` ends, or until it raises DemoError.

    ``look`` stores what it finds; :meth:`check` raises the error that ``look`` raised.
    """

    def __init__(self, url: str, look: Callable[[DatabaseReading], None]) -> None:
        self._url = url
        self._look = look
        self._failure: DemoError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching")

    def check(self) -> None:
        """Raises DemoError if a look failed, or if the database cannot be read."""
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with reading(self._url) as opened:
                while not self._stop.wait(_PAUSE):
                    self._look(opened)
        except DemoError as failure:
            self._failure = failure
