"""The serialization log: a durable, totally ordered log of units of work, one owner a partition.

========================  =====================================================================
:mod:`~kainite.log.format.entry`     what stands in the log: entries of five kinds, batches of entries
:mod:`~kainite.log.format.batch_codec`     a batch as bytes: an index of its entries and a payload
:mod:`~kainite.log.store.contract`     the store's interface; ``memory_store`` and ``dynamodb_store`` keep it
:mod:`~kainite.log.owner.mount`     how an owner takes a log partition over and fences the one before
:mod:`~kainite.log.state.folded`     the log folded: positions, open units, units in progress, conflicts
:mod:`~kainite.log.owner.owner`     group commit around state and store; answers appends
:mod:`~kainite.log.client`    what the rest of the daemon sees of the log; may become remote
========================  =====================================================================
"""
