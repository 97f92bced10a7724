"""Values and helpers that every room uses: positions, checkpoints, records, markers, errors, logs, clocks, retries.

Begin with :mod:`~kainite.base.errors` (all errors that Kainite raises on purpose), :mod:`~kainite.base.position` and
:mod:`~kainite.base.checkpoint`. :mod:`~kainite.base.retry` has the backoff, :mod:`~kainite.base.logs` the structured
events. Nothing here does I/O but the logs, the signals and the clocks. Base imports nothing of Kainite outside itself.
"""
