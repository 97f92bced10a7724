"""Views of the log for people and for the audit trail: :mod:`~kainite.log.views.unit_table` has a row for each unit.

The package imports ``log.state``, ``log.contract`` and ``log.format``.
"""
