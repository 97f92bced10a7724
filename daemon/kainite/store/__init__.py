"""Where a log partition is durable: implementations of :mod:`kainite.log.contract`.

:mod:`~kainite.store.memory` is the plainest implementation, :mod:`~kainite.store.dynamodb` the one for production: with
its items attribute by attribute in :mod:`~kainite.store.dynamodb_items`, and the calls of its table in
:mod:`~kainite.store.log_table`. :mod:`~kainite.store.striping` says in which key an id stands once a log is spread over
several keys, and :mod:`~kainite.store.stripe_reading` reads them in order. Imports from outside: ``log``, ``aws`` and
``base``.
"""
