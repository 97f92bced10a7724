"""A loader, a child process in any language, as a target (docs/targets.md).

``opening`` is what the list of kinds names. Begin with ``target``, then ``messages`` (requests and answers),
``delta_order`` (a unit's deltas in the order in which a loader gets them) and ``loader`` (the process). Imports from
outside: the child process and its markers, settings, the catalogue.
"""
