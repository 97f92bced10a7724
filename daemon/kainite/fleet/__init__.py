"""The fleet of an application's workers, and how this worker behaves in it (docs/kcl.md, *KCL 3.x fleets*).

Begin with :mod:`.kcl3.membership`: it decides the worker's stance, which :mod:`kainite.leases` reads in each round.
Imports from outside: leases (the stance alone), aws, settings, base.
"""
