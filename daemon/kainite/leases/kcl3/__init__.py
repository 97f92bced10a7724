"""KCL 3's coordination of a fleet: the coordinator items, the leader's liveness, and this worker's membership.

Begin with :mod:`.membership`: it decides the worker's stance (:mod:`kainite.leases.stance`), which taking leases reads
in each round (docs/kcl.md, *KCL 3.x fleets*). :mod:`.coordinator_items` and :mod:`.leader_liveness` are pure,
:mod:`.coordinator_table` makes the calls.
"""
