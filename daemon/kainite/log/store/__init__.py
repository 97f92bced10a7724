"""Stores of the log: where a log partition is durable.

:mod:`~kainite.log.store.contract` states the primitives and their invariants: begin there.
:mod:`~kainite.log.store.memory` is the plainest implementation, :mod:`~kainite.log.store.dynamodb` the one for
production, with its items in :mod:`~kainite.log.store.dynamodb_items`. The package imports ``log.format``,
``aws`` and ``base``.
"""
