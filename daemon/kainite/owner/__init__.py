"""The owner of a log partition: the only writer.

Begin with :mod:`~kainite.owner.mount` (taking a partition over) and :mod:`~kainite.owner.append` (batches and
heartbeats), which the apply job uses for its outcomes partition too. :mod:`~kainite.owner.owner` is the daemon's
owner; it decides by :mod:`~kainite.log.collecting.collect` (units), :mod:`~kainite.owner.requests` (retry and discard)
and :mod:`~kainite.owner.upkeep` (what is done on a timer), which writes the :mod:`~kainite.owner.audit` trail before it
truncates. Imports from outside: ``log``, ``uow``, ``observe``, ``aws``, ``settings`` and ``base``.
"""
