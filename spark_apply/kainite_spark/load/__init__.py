"""Copies a source's tables into a target: ranges of rows as Spark tasks, each with its entry in the target's ledger.

Begin with ``job`` (the driver), then ``tasks`` (one step). Imports from outside: the ledger, the plan and the snapshot
(``kainite.replicate``), and the apply job's Spark session.
"""
