"""What a micro-batch does: which units, on which job instances, from which entries of the log. Pure.

Begin with ``backlog`` (which units may run), then ``schedule`` (which job instance applies which unit)
and ``micro_batch`` (which task reads which entries). ``pending_unit`` is the unit that they work with.
Imports from outside: the log's outcomes and statuses, the conflict rule, the failure policy; no I/O.
"""
