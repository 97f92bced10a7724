"""Where a log partition is durable: implementations of :mod:`kainite.log.contract`.

:mod:`~kainite.store.memory` is the plainest implementation, :mod:`~kainite.store.dynamodb` the one for production. Its
parts, which the other stores do not need:

======================================  =============================================================================
:mod:`~kainite.store.batch_items`       a batch in its slot, or in chunks
:mod:`~kainite.store.batch_reading`     batches in order, while others append and truncate
:mod:`~kainite.store.inbox_items`       requests to the owner, and its answers
:mod:`~kainite.store.forks`             the forks that were met; in which key an item stands by them
:mod:`~kainite.store.stripe_reading`    slots in order, from several keys
:mod:`~kainite.store.dynamodb_items`    the items, attribute by attribute
:mod:`~kainite.store.log_table`         the calls of the table
======================================  =============================================================================

:mod:`~kainite.store.striping` says in which key an id stands once a log is spread over several keys. Imports from
outside: ``log``, ``aws`` and ``base``.
"""
