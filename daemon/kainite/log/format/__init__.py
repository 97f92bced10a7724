"""The contents of the log: :mod:`~kainite.log.format.entry` has the entries and batches, with no bytes in sight;
:mod:`~kainite.log.format.batch_codec` has a batch as bytes. Begin with the entries.

The package imports ``uow.delta`` and ``base`` only.
"""
