"""The serialization log: a durable, totally ordered log of units of work, one owner a partition.

========================  =====================================================================
:mod:`~kainite.log.entry`     what stands in the log: entries of five kinds, batches of entries
:mod:`~kainite.log.codec`     a batch as bytes: an index of its entries and a payload
:mod:`~kainite.log.store`     the store's interface; ``memory_store`` and ``dynamodb_store`` keep it
:mod:`~kainite.log.mount`     how an owner takes a log partition over and fences the one before
:mod:`~kainite.log.state`     the log folded: positions, open units, units in progress, conflicts
:mod:`~kainite.log.owner`     group commit around state and store; answers appends
:mod:`~kainite.log.client`    what the rest of the daemon sees of the log; may become remote
========================  =====================================================================
"""
