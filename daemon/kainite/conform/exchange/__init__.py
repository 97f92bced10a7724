"""The exchange with one child, from its start to its end.

Begin reading with :mod:`~kainite.conform.exchange.child_run`, the only module here that does I/O; ``json_lines`` and
``markers`` drive the child through the steps of a case in each dialect. ``checkpoint_answers`` answers its checkpoint
requests, ``delta_check`` reads what it emits, ``transcript`` keeps what was said, and ``step_result`` is the result of
a step. The exchange imports the cases, and the rooms child, kinesis, leases and uow.
"""
