"""Reading and changing the lease table by hand, for ``kainite leases`` and ``kainite leases reset``.

Begin with :mod:`.report` (the rows to show) and :mod:`.reset` (setting checkpoints). :mod:`.lag` measures at Kinesis,
:mod:`.seek_to_timestamp` finds checkpoints; both read a shard through :mod:`.shard_reading`.
Imports from outside: kinesis, the lease table, base. Nothing of the daemon imports this package.
"""
