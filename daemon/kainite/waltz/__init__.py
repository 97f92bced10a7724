"""The log for applications: transactions with locks, fed to clients in one order. Versions 0 to 4 of the protocol.

=======================================================  ============================================================
:mod:`~kainite.waltz.locks`           which transaction last raised a lock
:mod:`~kainite.waltz.partition`       a log partition of transactions, while this process owns it
:mod:`~kainite.waltz.reading`         durable transactions: recent ones from memory, others from the store
:mod:`~kainite.waltz.feed`            one client's feed, by credit
:mod:`~kainite.waltz.service`         answers messages, by partitions and feeds
:mod:`~kainite.waltz.owning`          mounts partitions, and mounts them again
:mod:`~kainite.waltz.context`         the interfaces that a program implements: its state, its transactions
:mod:`~kainite.waltz.connecting`      finds a partition's owner
:mod:`~kainite.waltz.client`          a program's side; its connection is ``link``, its appends
                                                         under way ``monitor``, the hashes of its locks ``lock_hash``
=======================================================  ============================================================

Begin with the partition at the owner, with the context at a program.
Programs that use the log begin with :func:`connect` (docs/log-service.md).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kainite.waltz.client import ApplicationLog
    from kainite.waltz.context import Application


def connect(
    properties: Path | str, application: Application, partition: int = 0
) -> AbstractAsyncContextManager[ApplicationLog]:
    """Connects a program to a log partition of applications, for ``async with``; stays connected until its end.

    Args:
        properties: a settings file, which names the log's table, and this program's user (docs/log-service.md).
        application: the program's state, to which transactions are applied.
        partition: the partition's number.

    Raises:
        SettingsError: the file cannot be used.
    """
    from kainite.waltz import connecting  # imported here: a daemon's log does not need the client

    return connecting.connect(properties, application, partition)
