"""The cases of ``kainite conform`` as data. No module here does I/O, except for reading the author's samples.

Begin reading with :mod:`~kainite.conform.cases.case`, one case; ``json_lines`` and ``markers`` list the cases of each
dialect, ``samples`` makes the records that they send. Cases import nothing from the rest of conform.
"""
