"""Child processes, and the dialects in which the daemon speaks with them.

Begin with :mod:`~kainite.child.dialect` (the interface of a dialect) and :mod:`~kainite.child.process` (a process that
speaks one). The room may import from ``kinesis``, ``settings`` and ``base``.

==============================================  ==============================================================
:mod:`~kainite.child.events`                    the actions and events of a conversation
:mod:`~kainite.child.turns`                     whose turn it is: the table of all dialects
:mod:`~kainite.child.dialect`                   the interface of a dialect
:mod:`~kainite.child.json_lines`                the ``json-lines`` dialects: KCL's multi-language protocol
:mod:`~kainite.child.markers`                   the ``markers`` dialect, for shard children and other workers
:mod:`~kainite.child.configured_dialect`        makes the dialect that the settings name
:mod:`~kainite.child.line_buffer`               bytes in any chunking to lines of bounded length
:mod:`~kainite.child.pipes`                     pipes on the event loop
:mod:`~kainite.child.piped_process`             a program on three pipes: start, watch, end
:mod:`~kainite.child.process`                   a process that speaks a dialect: request, serve, answer
:mod:`~kainite.child.program_lookup`            finds the program of a command
:mod:`~kainite.child.restart_policy`            when a failed child is started again
==============================================  ==============================================================

Only ``pipes``, ``piped_process``, ``process`` and ``program_lookup`` do I/O.
"""
