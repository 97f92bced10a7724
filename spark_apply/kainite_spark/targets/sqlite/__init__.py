"""SQLite as a target, by the standard library's driver.

``opening`` is what the list of kinds names. Begin with ``target``, then ``rendering`` (statements and values in
SQLite's SQL) and ``ledger`` (Kainite's own tables). Imports from outside:
``kainite.targets.sqlite``, the catalogue, errors.
"""
