"""Relational targets: one module a kind of database, one conformance suite for all."""
