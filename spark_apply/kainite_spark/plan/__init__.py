"""Plans micro-batches: the units, their job instances, and the entries of the log to read. Pure.

Begin with ``backlog`` (which units may run), then ``schedule`` (which job instance applies which unit)
and ``micro_batch`` (which task reads which entries). The units are the folded log's (``kainite.log.state.unit_state``).
Imports from outside: the log's units and outcomes, the conflict rule, the failure policy; no I/O.
"""
