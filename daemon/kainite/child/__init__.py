"""A child process and how the daemon speaks with it.

==========================================  ===================================================
:mod:`~kainite.child.lines`                 bytes in any chunking to lines of bounded length
:mod:`~kainite.child.messages`              one line to one message and back, as KCL does it
:mod:`~kainite.child.json_lines`            the ``json-lines`` dialect: who may say what, when
:mod:`~kainite.child.pipes`                 pipes on the event loop
:mod:`~kainite.child.process`               the process: start, talk, notice its end, end it
==========================================  ===================================================

The first three do no I/O.
"""
