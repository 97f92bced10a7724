"""Gives the tests a source database of their own."""

from support.postgresql_source import source

__all__ = ["source"]
