"""Where a log partition is durable: implementations of :mod:`kainite.log.contract`.

:mod:`~kainite.store.memory` is the plainest implementation, :mod:`~kainite.store.dynamodb` the one for production, with
its items in :mod:`~kainite.store.dynamodb_items`. Imports from outside: ``log``, ``aws`` and ``base``.
"""
