"""A child process and how the daemon speaks with it.

==========================================  ===================================================
:mod:`~kainite.child.line_buffer`                 bytes in any chunking to lines of bounded length
:mod:`~kainite.child.json_lines.messages`              one line to one message and back, as KCL does it
:mod:`~kainite.child.dialect`               what every dialect does for the process and the consumer
:mod:`~kainite.child.json_lines.dialect`            the ``json-lines`` dialects: who may say what, when
:mod:`~kainite.child.markers`               the ``markers`` dialect, for shard children and other workers
:mod:`~kainite.child.configured_dialect`              the dialect of the settings
:mod:`~kainite.child.pipes`                 pipes on the event loop
:mod:`~kainite.child.piped_process`       a program on three pipes: start, notice its end, end it
:mod:`~kainite.child.process`               one that speaks a dialect: ask, and serve until the answer
:mod:`~kainite.child.program_lookup`               whether the program is there at all
:mod:`~kainite.child.restart_policy`              when a failed child is started again
==========================================  ===================================================

Lines, messages, dialects and restarts do no I/O.
"""
