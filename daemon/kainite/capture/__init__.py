"""Capture: extractors that read a database's committed transactions for ``kainite extract``.

One package per database. Begin with :mod:`kainite.capture.postgresql.command` or :mod:`kainite.capture.mysql.command`,
the programs ``kainite-extract-postgresql`` and ``kainite-extract-mysql``. The modules beside the packages serve both.
Modules outside this package import nothing from it but what an initial copy needs: ``replication.create_slot`` and
``extractor.Offset``.
"""
