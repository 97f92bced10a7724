"""Gives the demo's tests a PostgreSQL server that decodes logically."""

from support.postgresql_source import logical_server, source

__all__ = ["logical_server", "source"]
