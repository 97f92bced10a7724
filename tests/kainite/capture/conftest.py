"""Gives the capture tests a source database each."""

from support.postgresql_source import source

__all__ = ["source"]
