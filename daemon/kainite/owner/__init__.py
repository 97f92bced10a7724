"""The owner of a log partition: the only writer.

Begin with :mod:`~kainite.owner.mount` (taking a partition over) and :mod:`~kainite.owner.append` (batches and
heartbeats), which the apply job uses for its outcomes partition too. :mod:`~kainite.owner.owner` is the daemon's owner:
:func:`kainite.owner.serving.serve_log` is the only way to open one, on a partition that is mounted.

=========================================  ==========================================================================
:mod:`~kainite.owner.shard_appends`        what comes through the shards: collected, recognised, or refused
:mod:`~kainite.owner.durable_writing`      how what is decided becomes durable, batch by batch
:mod:`~kainite.owner.append_queue`         appends that are not durable yet; **what may be granted, and when**
:mod:`~kainite.owner.room`                 when another append is taken
:mod:`~kainite.owner.requests`             retry and discard, as decisions on the log's state
:mod:`~kainite.owner.upkeep`               what is done on a timer; :mod:`~kainite.owner.looking` and
                                           :mod:`~kainite.owner.names` decide for it
:mod:`~kainite.owner.refit`                units that did not fit the target's catalogue
:mod:`~kainite.owner.reading_progress`     how far the shards are read, and what waits for it;
                                           :mod:`~kainite.owner.ending` completes units by it
:mod:`~kainite.owner.audit`                the trail that is written before the log is truncated
=========================================  ==========================================================================

Units are collected by :mod:`kainite.log.collecting`. Imports from outside: ``store``, ``log``, ``uow``, ``observe``,
``aws``, ``settings`` and ``base``.
"""
