"""Fragments become units of work, as functions of the folded log and the clock; no I/O.

:mod:`~kainite.log.collecting.collect` decides the entries of an append: begin there.
:mod:`~kainite.log.collecting.waiting` says which incomplete units have waited too long,
:mod:`~kainite.log.collecting.watermark` which units are complete where the source tells no end.
"""
