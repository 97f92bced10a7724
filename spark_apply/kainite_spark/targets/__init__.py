"""The targets of units of work: databases, and loaders of the user's own.

Begin with ``contract`` (what a target offers) and ``opening``, which asks the list of kinds
(:data:`kainite.settings.kinds.target_kinds.TARGET_KINDS`) what an address means. ``fence`` says who may write;
``schema`` holds a target's tables; ``statements`` orders deltas for all targets. ``postgresql``, ``sqlite`` and
``exec`` are the kinds, one folder each: its ``opening`` is what ``opener`` describes, its ``ledger`` has Kainite's own
tables in the kind's SQL. A kind imports nothing from another one. Imports from outside: units and their catalogue,
errors, settings, ``kainite.targets``; ``exec`` also markers and the child process.
"""
