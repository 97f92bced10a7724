"""What a worker decides at one look at the table, without I/O. Begin with :mod:`~kainite.duties.steps.member`.

Imports from outside: base.
"""
