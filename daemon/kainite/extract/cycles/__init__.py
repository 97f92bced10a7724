"""Extraction in cycles. Begin reading with :mod:`~kainite.extract.cycles.cycle`, the state machine of one cycle, which
does no I/O and has the table of what a crash leaves behind; ``cyclic_extraction`` drives it with a process and a file.
"""
