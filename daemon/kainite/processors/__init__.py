"""The common parts of the record processors that ship with Kainite (:mod:`kainite_processors`).

Begin reading with :mod:`~kainite.processors.frame`, the frame on Amazon's own library; ``tables`` maps a source's
tables to those of the target. ``pieces`` is for Aurora DSQL: rows that come in several records. The package imports
only kinesis, uow and base, and needs ``kainite[processors]``.
"""
