"""MariaDB and MySQL as a target, by PyMySQL.

``opening`` is what the list of kinds names. Begin with ``session`` (a task's transactions) and ``target`` (the
driver's), then ``rendering`` and ``literals`` (statements and values in MariaDB's SQL), ``packet`` (many statements in
one round trip), ``present_tables`` (what tables are like now), ``ledger`` (Kainite's own tables) and ``errors`` (which
errors refuse a unit). Imports from outside: PyMySQL, ``kainite.targets.mariadb``, the catalogue, errors.
"""
