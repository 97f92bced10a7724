"""Gives the tests a source database of their own."""

from __future__ import annotations

from support.postgresql_source import source

__all__ = ["source"]
