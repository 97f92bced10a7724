"""``kainite extract``: runs an extractor in any language and puts its messages on the stream.

Begin reading with :func:`kainite.extract.run.run`, from settings to exit code.

============================================  ======================================================================
:mod:`~kainite.extract.run`                   makes the parts, and runs the extraction until a signal
:mod:`~kainite.extract.extractor`             the extractor's process, and what it writes
:mod:`~kainite.extract.plain_extraction`      extraction by one run of the program after another
:mod:`~kainite.extract.cycles`                extraction in cycles: a state machine, and the loop that drives it
:mod:`~kainite.extract.offsets`               how far the source has been extracted, and the file that keeps it
:mod:`~kainite.extract.output`                messages on their way to the stream: shards, records, retries
:mod:`~kainite.extract.guarantees`            what each kind of extraction promises
:mod:`~kainite.extract.progress`              the progress line, and the events for scripts
============================================  ======================================================================

From outside, the package imports the rooms child, kinesis, uow, aws, settings and base. ``cycles.cycle``,
``offsets.place``, ``output.spread`` and ``guarantees`` do no I/O.
"""
