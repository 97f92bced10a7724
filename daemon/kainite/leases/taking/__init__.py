"""Taking leases: which ones this worker takes, and when (docs/kcl.md, *Taking leases*).

Begin with :mod:`.choice`, the rules as pure functions. :mod:`.taker` scans the table and carries them out;
:mod:`.kcl2_leader` computes which worker of a KCL 2.x fleet syncs shards.
Imports from outside: the rooms of leases below it (shard_sync, holding, table), observe, base.
"""
