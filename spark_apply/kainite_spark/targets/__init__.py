"""Where units of work are applied: databases, and loaders of the user's own.

Begin with ``contract`` (what a target offers) and ``opening`` (which target a URL means). ``fence``
says who may write, ``schema`` what is known of the tables. ``statements`` orders deltas for all
targets, ``sql`` is what the databases share, ``postgresql``, ``sqlite`` and ``exec`` are the targets.
Imports from outside: kainite's units and catalogue, its markers and child process (``exec``), its settings.
"""
