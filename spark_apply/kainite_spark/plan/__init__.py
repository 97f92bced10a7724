"""Plans micro-batches: the units, their job instances, and the entries of the log to read. Pure.

Begin with ``backlog`` (which units may run), then ``schedule`` (which job instance applies which unit)
and ``micro_batch`` (which task reads which entries). ``pending_unit`` is the unit that they work with.
Imports from outside: the log's outcomes and statuses, the conflict rule, the failure policy; no I/O.
"""
