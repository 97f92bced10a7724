"""The ``markers`` dialect: messages and flow between a supervisor and a worker, told apart by markers (seed 000).

====================================================  ===================================================
:mod:`~kainite.child.markers.framing`                 markers, messages with their ends, and the way back
:mod:`~kainite.base.marker_spelling`                markers as text, for settings and for children
:mod:`~kainite.child.markers.exchange`                T and L: messages out, answers back, alone or in batches
:mod:`~kainite.child.markers.extraction`              E: messages of a worker that runs once, or cycle by cycle
:mod:`~kainite.child.markers.start_parameters`         what a worker is told when it is started
====================================================  ===================================================

Nothing here does I/O.
"""
