"""Kainite: a KCL-style worker daemon without a JVM, carrying whole units of work."""

__version__ = "0.1.0"
