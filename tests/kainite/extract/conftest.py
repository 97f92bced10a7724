"""Gives the tests of extraction a stream on moto's server, and settings to extract onto it."""

from support.extract_bench import bench, whole

__all__ = ["bench", "whole"]
