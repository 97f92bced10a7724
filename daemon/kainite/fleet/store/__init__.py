"""The coordination table: what all workers know of each other. Begin with :mod:`~kainite.fleet.store.contract`.

Imports from outside: aws, base.
"""
