"""Names in SQL text. Pure."""

from __future__ import annotations


def quoted(identifier: str) -> str:
    """Returns an identifier in double quotes, as PostgreSQL and SQLite read it, whatever is in it."""
    return '"' + identifier.replace('"', '""') + '"'


def escaped_for_psycopg(sql: str) -> str:
    """Returns SQL text in which psycopg finds no placeholder: it reads ``%%`` as a percent sign."""
    return sql.replace("%", "%%")
