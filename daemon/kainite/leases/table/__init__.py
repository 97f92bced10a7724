"""The lease table in DynamoDB: KCL's items and KCL's conditional writes (docs/kcl.md, *Leases*).

Begin with :mod:`.lease` (a lease and its item), then :mod:`.lease_table` (the operations on it).
Imports from outside: kinesis (shards and hash ranges), aws, base.
"""
