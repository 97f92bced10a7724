"""A replica of an existing PostgreSQL database: where it begins, what it consists of, and how far it has come.

Begin with ``ends`` (which databases), ``tables`` (which tables), ``page_ranges`` (how a table is cut) and ``ledger``
(what the target knows of its load). What needs Spark is in ``kainite_spark.load``. Other packages import any module
here. Imports from outside: the source's slot and snapshot (``kainite.capture``), connections, settings.
"""
