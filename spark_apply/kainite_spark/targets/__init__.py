"""The targets of units of work: databases, and loaders of the user's own.

Begin with ``contract`` (what a target offers) and ``opening`` (which target a URL means). ``fence``
says who may write; ``schema`` holds a target's tables. ``statements`` orders deltas for all
targets; ``sql`` holds what the databases share; ``postgresql``, ``sqlite`` and ``exec`` are the targets.
Imports from outside: units and their catalogue, errors, settings; ``exec`` also markers and the child process.
"""
