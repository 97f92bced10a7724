"""KCL 3's coordination of a fleet: the coordinator items, the leader's liveness, and this worker's membership.

Begin with :mod:`.membership`. :mod:`.coordinator_items` and :mod:`.leader_liveness` are pure, :mod:`.coordinator_table`
makes the calls. Imports from outside: as :mod:`kainite.fleet`.
"""
