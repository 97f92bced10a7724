"""``kainite extract``: an extractor in any language feeds the stream. The E-stage of seed 000.

=========================================  =========================================================
:mod:`~kainite.extract.cycles.cycle`              one cycle, step by step: states, and what a crash leaves behind
:mod:`~kainite.extract.offsets.place`              how far the source has been extracted, and what is asked next
:mod:`~kainite.extract.offsets.offset_file`        the place, on a disk
:mod:`~kainite.extract.output.spread`             which shard a message goes to
:mod:`~kainite.extract.guarantees`         what each kind of extraction promises
:mod:`~kainite.extract.patience`           failures in a row, and the pause after each
:mod:`~kainite.extract.pause`              a pause that a wish to stop ends
:mod:`~kainite.extract.extractor`          the extractor's process, and what it says
:mod:`~kainite.extract.output.sink`               the stream, as messages go onto it
:mod:`~kainite.extract.cycles.cyclic_extraction`             extraction in cycles
:mod:`~kainite.extract.plain_extraction`              extraction by one run after another
:mod:`~kainite.extract.progress`           the progress line, and the events for scripts
:mod:`~kainite.extract.run`            all of it together, until a signal
:mod:`~kainite.extract.offsets.begin`          ``--begin``
:mod:`~kainite.cli.extract_report`              ``--check``
=========================================  =========================================================

Cycle, place, spread, guarantees and patience do no I/O.
"""
