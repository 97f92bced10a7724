"""Gives the tests of commands a stream to extract onto."""

from support.extract_bench import bench, whole

__all__ = ["bench", "whole"]
