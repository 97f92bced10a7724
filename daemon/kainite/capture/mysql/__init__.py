"""MariaDB's and MySQL's binlog, read as numbered transactions.

Begin with :mod:`~kainite.capture.mysql.command` (the program ``kainite-extract-mysql``), which drives
:mod:`~kainite.capture.mysql.extractor`. Below it, in the order of the data: ``binlog_connection`` (the server's
stream), ``events``, ``table_map``, ``rows`` and ``values`` (bytes to values, no I/O), ``transactions`` (events to the
changes of committed transactions), ``source_transactions`` (these to the records of their units), ``table_reading``
and ``records`` (changes to records, which are those of the extractor for PostgreSQL), ``units`` (numbered units). Needs
the extra ``mariadb``.
"""
