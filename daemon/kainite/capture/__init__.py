"""Capture: extractors that read a database's committed transactions for ``kainite extract``.

One package per database; begin with :mod:`kainite.capture.postgresql.command` and :mod:`kainite.capture.mysql.command`,
the programs ``kainite-extract-postgresql`` and ``kainite-extract-mysql``. Modules outside this package import nothing from it but what an initial copy
needs: ``replication.create_slot`` and ``extractor.Offset``.
"""
