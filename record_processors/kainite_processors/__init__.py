"""The record processors that come with Kainite; each is a command, ``kainite-processor-…``.

``record_processors/NAME/README.md`` says what each turns into what; their common parts are :mod:`kainite.processors`.
They need ``kainite[processors]``, Amazon's library. Nothing is imported from outside.
"""
