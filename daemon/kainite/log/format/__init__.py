"""The contents of the log: :mod:`~kainite.log.format.entry` has the entries and batches, with no bytes in sight;
:mod:`~kainite.log.format.batch_codec` has a batch as bytes, :mod:`~kainite.log.format.index` its index, and
:mod:`~kainite.log.format.deltas` the deltas of an entry. Begin with the entries.

The package imports ``uow.delta``, ``uow.packing`` and ``base`` only.
"""
