"""Gives the tests of the log's owner a store whose connection they break."""

from support.faulty_store import faulty

__all__ = ["faulty"]
