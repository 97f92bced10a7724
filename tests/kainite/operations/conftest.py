"""Gives the tests of operations a log with units, a fleet, and a lease table with a stream."""

from support.fleet_commands import fleet, in_memory
from support.lease_commands import double, table, world
from support.log_cli import log_world

__all__ = ["double", "fleet", "in_memory", "log_world", "table", "world"]
