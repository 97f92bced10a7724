"""The ``json-lines`` dialects: KCL's multi-language protocol and its first form, ``json-lines-v0``. Without I/O.

Begin with :mod:`~kainite.child.json_lines.dialect`: which side may say what, and when.
:mod:`~kainite.child.json_lines.messages` turns one line into one message and back, as KCL does.
The package may import from ``child`` (events, turns, lines) and ``base``.
"""
