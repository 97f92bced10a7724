"""The fleet's statuses, records and rules, without I/O.

Begin with :mod:`~kainite.fleet.model.states`. Imports from outside: base.
"""
