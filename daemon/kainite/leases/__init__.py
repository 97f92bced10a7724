"""KCL's lease table: which worker reads which shard, and how far each shard is processed (docs/kcl.md, *Leases*).

Begin with :mod:`.keeper`, the one class that the daemon uses. It joins :mod:`.taking` (takes leases), :mod:`.holding`
(renews them, stores checkpoints) and :mod:`.shard_sync` (creates and deletes them); all write through :mod:`.table`.
:mod:`.kcl3` takes part in a fleet of KCL 3.x.
:mod:`.administration` is for the commands ``kainite leases`` and ``kainite leases reset``.
Imports from outside: kinesis, observe, aws, settings, base.
"""
