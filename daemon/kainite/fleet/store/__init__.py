"""The coordination table: the workers' only knowledge of each other. Begin with :mod:`~kainite.fleet.store.contract`.

Imports from outside: aws, base.
"""
