"""Compares a source with its target, to the row, while both live: ranges of rows as tasks under one snapshot a side.

Begin with ``job`` (the driver), then ``tasks`` (what a task reads), ``runners`` (threads, or Spark). Imports from
outside: the snapshots, the SQL and the comparison of rows (``kainite.replicate``), and the apply job's Spark session.
"""
