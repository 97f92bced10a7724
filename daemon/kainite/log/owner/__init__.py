"""The owner of a log partition: the only writer.

Begin with :mod:`~kainite.log.owner.mount` (taking a partition over) and :mod:`~kainite.log.owner.append` (batches and
heartbeats), which the apply job uses for its outcomes partition too. :mod:`~kainite.log.owner.owner` is the daemon's
owner; it decides by :mod:`~kainite.log.owner.collect` (units), :mod:`~kainite.log.owner.requests` (retry and discard)
and :mod:`~kainite.log.owner.upkeep` (what is done on a timer). The package imports the other packages of ``log``,
``uow``, ``settings`` and ``base``.
"""
