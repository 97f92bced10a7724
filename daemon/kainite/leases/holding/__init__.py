"""The leases that this worker holds: renewing them, handing them over, and storing checkpoints in them.

Begin with :mod:`.held_leases`, which states the invariants. :mod:`.renewer` makes the writes;
:mod:`.checkpoint_requests` decides what a child may checkpoint (docs/kcl.md, *Checkpoints*).
Imports from outside: the lease table, observe, settings, base.
"""
