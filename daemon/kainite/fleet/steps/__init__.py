"""What a worker decides at one look at the table, without I/O. Begin with :mod:`~kainite.fleet.steps.member`.

Imports from outside: base.
"""
