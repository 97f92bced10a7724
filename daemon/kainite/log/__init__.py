"""The serialization log: a durable, totally ordered log of units of work, with one owner for each log partition.

=================  ============================================================================
``client``         the log as the rest of the daemon sees it
``format``         entries, batches of entries, and a batch as bytes
``contract``       the primitives that a store must offer
``state``          the log folded: positions, open units, unresolved units, snapshots
``collecting``     fragments become units of work: counting, waiting, the watermark
``views``          the log as a table of units
=================  ============================================================================

Begin with :mod:`~kainite.log.format.entry`, then :mod:`~kainite.log.state.units`. The room opens no socket and calls no
AWS service: :mod:`kainite.store` makes a log durable, :mod:`kainite.owner` writes it, :mod:`kainite.peers` reaches the
owner. Imports from outside: ``uow``, ``settings`` and ``base``. Its model is in docs/decisions.md.
"""
