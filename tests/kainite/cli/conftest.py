"""Gives the tests of commands a stream to extract onto, and a lease table with a stream."""

from support.extract_bench import bench, whole
from support.lease_commands import double, table, world

__all__ = ["bench", "double", "table", "whole", "world"]
