"""The order of a group's deltas and the set-based statements that they share. Pure.

Begin with ``planner``. It puts units into ``layers`` (no two conflict), a unit's deltas into ``steps``
(no row twice), and the rows of a table with ``self_reference`` by depth. A target renders the
statements. Imports from outside: deltas, the catalogue, the conflict rule.
"""
