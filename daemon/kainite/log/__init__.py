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
The model is in docs/architecture.md.
"""
