"""The ``markers`` dialect: messages between a daemon and a worker, parted by markers (docs/protocol.md, *Markers*).

Begin with :mod:`~kainite.child.markers.exchange`. The package may import from ``child`` (events, turns), ``settings``
and ``base``. It does no I/O.

======================================================  ============================================================
:mod:`~kainite.child.markers.framing`                   cuts a stream of bytes at the markers
:mod:`~kainite.child.markers.exchange`                  T and L stages: messages out, answers back, alone or in batches
:mod:`~kainite.child.markers.extraction`                E stage: messages of a worker that runs once, or in cycles
:mod:`~kainite.child.markers.dialect`                   the T stage as a shard's child speaks it
:mod:`~kainite.child.markers.records`                   a batch of Kinesis records, as bytes for this dialect
:mod:`~kainite.child.markers.death_policy`              when records that killed workers are left out
:mod:`~kainite.child.markers.start_parameters`          the arguments and variables that a worker is started with
======================================================  ============================================================
"""
