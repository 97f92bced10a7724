"""Reads the log while another apply job's lease runs out, so that the job which takes over need not read it then.

A job that takes over reads the log from its latest snapshot on: seconds, where that is thousands of entries. The state
after an id is the fold of the log up to that id, whenever it was read, and a durable entry never changes. So a job that
stands by may read them before it has fenced anybody; afterwards it reads what has come since.
"""

from __future__ import annotations

from contextlib import suppress

from kainite.base.errors import LogCorruptError, LogError
from kainite.log.contract import LogStore
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import fold_rest, load_state


class EarlyRead:
    """The log as far as it was read.

    Args:
        store: the log's store.
        partition: the log partition.
    """

    def __init__(self, store: LogStore, partition: str) -> None:
        self._store = store
        self._partition = partition
        self._state: FoldedLog | None = None

    def read(self) -> None:
        """Reads what the log has by now. An error is left to :meth:`take`, which meets it again if it lasts."""
        with suppress(LogError):
            self._state = self._read()

    def take(self) -> FoldedLog:
        """Returns the log folded up to its present tail; the caller alone has it.

        Raises:
            LogCorruptError: the log does not read back as written.
            LogUnavailableError: the store does not answer.
        """
        return self._read()

    def _read(self) -> FoldedLog:
        state, self._state = self._state, None
        if state is not None:
            with suppress(LogCorruptError):  # what came next was truncated: it is read anew
                fold_rest(self._store, self._partition, state)
                return state
        return load_state(self._store, self._partition)
