"""Shard sync: creating and deleting leases as the stream's shards change (docs/kcl.md, *Shard sync*).

Begin with :mod:`.schedule`, which decides what is due. :mod:`.create_leases` creates leases, :mod:`.cleanup` deletes
them; the lineage rules are in :mod:`kainite.leases.lineage`.
Imports from outside: kinesis (the stream's shards), the lease table, observe, settings, base.
"""
