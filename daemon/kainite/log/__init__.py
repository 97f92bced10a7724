"""The serialization log: a durable, totally ordered log of units of work, with one owner for each log partition.

================  ============================================================================
:mod:`~kainite.log.client`   the log as the rest of the daemon sees it
``format``        entries of five kinds, batches of entries, and a batch as bytes
``store``         the primitives that a store must offer; in memory and in DynamoDB
``state``         the log folded: positions, open units, unresolved units, snapshots
``views``         the log as a table of units
``audit``         the trail that units go to before they are truncated
``owner``         mount and fence, append, heartbeat, collect units, upkeep
================  ============================================================================

Begin with :mod:`~kainite.log.format.entry`, then :mod:`~kainite.log.state.units`. The room imports from ``uow``,
``observe``, ``aws``, ``settings`` and ``base``; its own packages import only from those above them in the table.
``service`` has the log over TCP. Programs that use the log begin with :func:`connect` (docs/log-service.md).
The model is in docs/architecture.md.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kainite.log.service.applications.client import ApplicationLog
    from kainite.log.service.applications.context import Application


def connect(
    properties: Path | str, application: Application, partition: int = 0
) -> AbstractAsyncContextManager[ApplicationLog]:
    """Connects a program to a log partition of applications, for ``async with``; stays connected until its end.

    Args:
        properties: a settings file: the log's table, and who this program is (docs/log-service.md).
        application: the program's state, which transactions are applied to.
        partition: the partition's number.

    Raises:
        SettingsError: the file cannot be used.
    """
    from kainite.log.service.applications import connecting  # a daemon's log needs none of it

    return connecting.connect(properties, application, partition)
