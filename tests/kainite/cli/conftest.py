"""Gives the tests of commands a stream to extract onto, a lease table with a stream, a fleet, and a log with
units."""

from support.extract_bench import bench, whole
from support.fleet_commands import fleet, in_memory
from support.lease_commands import double, table, world
from support.log_cli import log_world, two_targets

__all__ = ["bench", "double", "fleet", "in_memory", "log_world", "table", "two_targets", "whole", "world"]
