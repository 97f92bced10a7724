"""PostgreSQL's logical replication, read as numbered transactions.

Begin with :mod:`~kainite.capture.postgresql.command` (the program ``kainite-extract-postgresql``), which drives
:mod:`~kainite.capture.postgresql.extractor`. Below it, in the order of the data: ``replication`` (a slot's connection),
``replication_frames`` and ``pgoutput`` (bytes to messages, no I/O), ``transactions`` (messages to the changes of
committed transactions), ``units`` (changes to numbered units), ``records`` and ``row_pieces`` (changes to the stream's
records). Other packages import ``replication.create_slot``,
``replication.SourceSlot`` and ``offset.Offset`` only. Needs the extra ``postgresql``.
"""
