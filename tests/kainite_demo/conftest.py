"""Gives each of the demo's tests a source and a target database."""

from support.pgbench_databases import target
from support.postgresql_source import source

__all__ = ["source", "target"]
