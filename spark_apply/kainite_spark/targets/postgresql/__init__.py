"""PostgreSQL as a target.

Begin with ``target``, then ``rendering`` (set-based statements in its SQL) and ``errors`` (which errors
refuse a unit). Imports from outside: psycopg, the catalogue, errors.
"""
