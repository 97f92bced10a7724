"""PostgreSQL as a target.

``opening`` is what the list of kinds names. Begin with ``target``, then ``rendering`` (set-based statements in
PostgreSQL's SQL), ``ledger`` (Kainite's own tables) and ``errors`` (which errors refuse a unit). Imports from outside:
psycopg, ``kainite.targets.postgresql``, the catalogue, errors.
"""
